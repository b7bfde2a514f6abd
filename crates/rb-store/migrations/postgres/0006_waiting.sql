-- 0006: operator messages that the next model call of a run delivers; deleted with the run.
CREATE TABLE waiting (
    org      text COLLATE "C" NOT NULL,
    run_id   text COLLATE "C" NOT NULL,
    words_id text COLLATE "C" NOT NULL,
    text     text NOT NULL,
    at_ms    bigint NOT NULL,
    PRIMARY KEY (org, run_id, words_id)
);
CREATE INDEX waiting_by_age ON waiting (at_ms, org, run_id);
