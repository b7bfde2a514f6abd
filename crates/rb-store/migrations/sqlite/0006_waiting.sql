-- 0006: operator messages that the next model call of a run delivers; deleted with the run.
CREATE TABLE waiting (
    org      TEXT    NOT NULL,
    run_id   TEXT    NOT NULL,
    words_id TEXT    NOT NULL,
    text     TEXT    NOT NULL,
    at_ms    INTEGER NOT NULL,
    PRIMARY KEY (org, run_id, words_id)
) WITHOUT ROWID;

CREATE INDEX waiting_by_age ON waiting (at_ms, org, run_id);

CREATE TRIGGER waiting_goes_with_runs AFTER DELETE ON runs BEGIN
    DELETE FROM waiting WHERE org = old.org AND run_id = old.run_id;
END;
