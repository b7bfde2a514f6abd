-- 0006: conversations are found by their newest answer, too.
--
-- `answer` is the provider's name for it, where the provider keeps the conversation; `mark` is what it is known by in a
-- history that the client has rewritten. Conversations with a name have none of the three.
ALTER TABLE conversations
    ADD COLUMN answer text COLLATE "C" NOT NULL DEFAULT '',
    ADD COLUMN mark text COLLATE "C" NOT NULL DEFAULT '';

DROP INDEX conversations_by_head;
CREATE INDEX conversations_by_head ON conversations (org, head, at_ms) WHERE head <> '';
CREATE INDEX conversations_by_answer ON conversations (org, answer) WHERE answer <> '';
CREATE INDEX conversations_by_mark ON conversations (org, mark) WHERE mark <> '';
