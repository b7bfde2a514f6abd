-- 0002: gateway state of conversations.
--
-- `head` is the hash of the conversation up to its newest message, which identifies requests without a run id.
-- `state` is opaque. A conversation is deleted with its run.
CREATE TABLE conversations (
    org    TEXT    NOT NULL,
    run_id TEXT    NOT NULL,
    head   TEXT    NOT NULL,
    state  TEXT    NOT NULL,
    at_ms  INTEGER NOT NULL,
    PRIMARY KEY (org, run_id)
) WITHOUT ROWID;

CREATE INDEX conversations_by_head ON conversations (org, head, at_ms);

CREATE TRIGGER conversations_go_with_runs AFTER DELETE ON runs BEGIN
    DELETE FROM conversations WHERE org = old.org AND run_id = old.run_id;
END;
