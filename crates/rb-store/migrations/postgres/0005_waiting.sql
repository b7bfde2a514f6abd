-- 0005: what people want to say to a run, until its next model call takes it along. It goes with its run.
CREATE TABLE waiting (
    org      text COLLATE "C" NOT NULL,
    run_id   text COLLATE "C" NOT NULL,
    words_id text COLLATE "C" NOT NULL,
    text     text NOT NULL,
    at_ms    bigint NOT NULL,
    PRIMARY KEY (org, run_id, words_id)
);
CREATE INDEX waiting_by_age ON waiting (at_ms, org, run_id);
