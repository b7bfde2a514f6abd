-- 0007: lookup of conversations by their newest response.
--
-- `answer` is the provider's id of the response, if the provider stores the conversation; `mark` is its fingerprint
-- for histories that the client has rewritten. All keys are empty for conversations with a run id.
ALTER TABLE conversations ADD COLUMN answer TEXT NOT NULL DEFAULT '';
ALTER TABLE conversations ADD COLUMN mark TEXT NOT NULL DEFAULT '';

DROP INDEX conversations_by_head;
CREATE INDEX conversations_by_head ON conversations (org, head, at_ms) WHERE head <> '';
CREATE INDEX conversations_by_answer ON conversations (org, answer) WHERE answer <> '';
CREATE INDEX conversations_by_mark ON conversations (org, mark) WHERE mark <> '';
