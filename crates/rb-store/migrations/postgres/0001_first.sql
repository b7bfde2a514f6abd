-- 0001: everything that is kept, for many nodes at once.
--
-- How to read this folder: as migrations/sqlite. A file is one migration; its number is the version of the schema after
-- it. All that are due run in one transaction under a lock, so that of several nodes that start at once one does it and
-- the others wait. A file that has been released is never changed.
--
-- Habits. The tables and columns are those of SQLite, and so are the reasons, unless a comment says otherwise. Texts
-- have the collation "C": they are compared by bytes, on every machine and by every backend alike. A zero byte, which
-- PostgreSQL does not take, is written as two characters (`text.rs`). Nothing refers to anything by a foreign key: who
-- writes holds the lock of the run already, and a key would be looked up again for every step.

-- A run: what it said about itself, and its steps in numbers. The row is written anew with every step of the run, so
-- nothing that changes with a step may be indexed: then a new version stays in its page and touches no index.
-- That is why retention has a day instead of a time, which changes once a day, and why pages are filled to two thirds.
-- `version` counts the writes; a row that was just made has none, which is how it is told apart.
CREATE TABLE runs (
    id             bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    version        bigint NOT NULL DEFAULT 0,
    org            text COLLATE "C" NOT NULL,
    run_id         text COLLATE "C" NOT NULL,
    project        text COLLATE "C" NOT NULL,
    started_ms     bigint NOT NULL,
    seen_ms        bigint NOT NULL,
    seen_day       bigint NOT NULL,
    finished_ms    bigint,
    outcome        text COLLATE "C",
    outcome_class  bigint NOT NULL DEFAULT 3,
    experiment_id  text COLLATE "C" NOT NULL DEFAULT '',
    arm            text COLLATE "C" NOT NULL DEFAULT '',
    step_count     bigint NOT NULL DEFAULT 0,
    injected_steps bigint NOT NULL DEFAULT 0,
    fired_steps    bigint NOT NULL DEFAULT 0,
    score_nano     bigint NOT NULL DEFAULT 0,
    score_peak     double precision NOT NULL DEFAULT 0,
    tokens_total   bigint NOT NULL DEFAULT 0,
    tokens_input   bigint NOT NULL DEFAULT 0,
    tokens_output  bigint NOT NULL DEFAULT 0,
    cache_read     bigint NOT NULL DEFAULT 0,
    cache_write    bigint NOT NULL DEFAULT 0,
    cost_nano      bigint NOT NULL DEFAULT 0,
    agent_name     text COLLATE "C" NOT NULL DEFAULT '',
    model          text COLLATE "C" NOT NULL DEFAULT '',
    framework      text COLLATE "C" NOT NULL DEFAULT '',
    codebase       text COLLATE "C" NOT NULL DEFAULT '',
    task_profile   text COLLATE "C" NOT NULL DEFAULT '',
    parent         text COLLATE "C" NOT NULL DEFAULT '',
    monitors       text,
    models         text,
    metadata       text,
    task           text NOT NULL DEFAULT ''
) WITH (fillfactor = 67);

CREATE UNIQUE INDEX runs_by_name ON runs (run_id, org);
CREATE INDEX runs_by_time ON runs (started_ms, org, run_id);
CREATE INDEX runs_of_org ON runs (org, started_ms, run_id);
CREATE INDEX runs_of_project ON runs (org, project, started_ms, run_id);
CREATE INDEX runs_of_agent ON runs (org, agent_name, started_ms, run_id);
CREATE INDEX runs_of_model ON runs (org, model, started_ms, run_id);
CREATE INDEX runs_by_outcome ON runs (org, outcome_class, started_ms, run_id);
CREATE INDEX runs_of_experiment ON runs (experiment_id, org, project, started_ms) WHERE experiment_id <> '';
CREATE INDEX runs_of_codebase ON runs (org, project, codebase) WHERE codebase <> '';
CREATE INDEX runs_by_silence ON runs (seen_day);

-- In which runs a monitor fired at least once.
CREATE TABLE fired_runs (
    org        text COLLATE "C" NOT NULL,
    monitor    text COLLATE "C" NOT NULL,
    started_ms bigint NOT NULL,
    run_id     text COLLATE "C" NOT NULL,
    run        bigint NOT NULL,
    PRIMARY KEY (org, monitor, started_ms, run_id)
);
CREATE INDEX fired_runs_of_run ON fired_runs (run);

-- A step; `run` is runs.id. Rows lie in the order they came in, so those that expire together lie together; a run is
-- read and deleted over the one index there is. Rows hardly ever change, which the last line tells the cleaner.
CREATE TABLE steps (
    run                 bigint NOT NULL,
    step_index          bigint NOT NULL,
    at_ms               bigint NOT NULL,
    total_score         double precision NOT NULL,
    cost_usd            double precision NOT NULL,
    tokens_total        bigint NOT NULL,
    tokens_input        bigint NOT NULL,
    tokens_output       bigint NOT NULL,
    cache_read          bigint NOT NULL,
    cache_write         bigint NOT NULL,
    injected            boolean NOT NULL,
    is_error            boolean NOT NULL,
    input_is_structured boolean NOT NULL,
    model               text NOT NULL,
    scores              text,
    fired               text,
    failure_type        text,
    action              text,
    monitors_fired      text,
    injection_sources   text,
    injections          text,
    intervention_texts  text,
    evidence            text,
    metadata            text,
    replay              text,
    project             text NOT NULL,
    user_input          text NOT NULL,
    thought             text NOT NULL,
    action_input        text,
    observation         text,
    PRIMARY KEY (run, step_index)
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_insert_scale_factor = 0.05);

-- What an organisation used on a day, in several rows that are added up when they are read: one row would make all
-- writers of an organisation wait for each other's commit. A row alone may be negative, the sum is not.
CREATE TABLE usage (
    org           text COLLATE "C" NOT NULL,
    day           bigint NOT NULL,
    slot          integer NOT NULL,
    interventions bigint NOT NULL,
    steps         bigint NOT NULL,
    tokens        bigint NOT NULL,
    PRIMARY KEY (org, day, slot)
) WITH (fillfactor = 50);

CREATE TABLE patterns (
    org             text COLLATE "C" NOT NULL,
    tier            text COLLATE "C" NOT NULL,
    pattern_id      text COLLATE "C" NOT NULL,
    failure_type    text,
    model_family    text,
    source_trace_id text,
    gate_threshold  double precision,
    context         text NOT NULL,
    fields          text,
    created_ms      bigint NOT NULL,
    updated_ms      bigint NOT NULL,
    uses            bigint NOT NULL,
    used_ms         bigint,
    PRIMARY KEY (org, tier, pattern_id)
) WITH (fillfactor = 80);

CREATE TABLE findings (
    org          text COLLATE "C" NOT NULL,
    codebase     text COLLATE "C" NOT NULL,
    finding_id   text COLLATE "C" NOT NULL,
    file_path    text COLLATE "C" NOT NULL,
    finding_type text NOT NULL,
    created_ms   bigint NOT NULL,
    updated_ms   bigint NOT NULL,
    metadata     text,
    content      text NOT NULL,
    PRIMARY KEY (org, codebase, finding_id)
);
CREATE INDEX findings_by_age ON findings (org, codebase, created_ms, finding_id);
CREATE INDEX findings_about_file ON findings (org, codebase, file_path);

CREATE TABLE profiles (
    org         text COLLATE "C" NOT NULL,
    project     text COLLATE "C" NOT NULL,
    profile_id  text COLLATE "C" NOT NULL,
    description text NOT NULL,
    weights     text,
    extra       text,
    created_ms  bigint NOT NULL,
    updated_ms  bigint NOT NULL,
    PRIMARY KEY (org, project, profile_id)
);

-- Hashes only; a key itself is never kept.
CREATE TABLE keys (
    key_id     text COLLATE "C" NOT NULL PRIMARY KEY,
    name       text NOT NULL,
    shown      text NOT NULL,
    hash       text COLLATE "C" NOT NULL UNIQUE,
    org        text COLLATE "C" NOT NULL,
    project    text COLLATE "C" NOT NULL,
    created_ms bigint NOT NULL,
    revoked_ms bigint
);

CREATE TABLE settings (
    name  text COLLATE "C" NOT NULL PRIMARY KEY,
    value text NOT NULL
);

-- What the search over runs looks in: id, task and agent's name, in small letters. Apart from the run, whose row is
-- written with every step.
CREATE TABLE run_words (
    run  bigint NOT NULL PRIMARY KEY,
    text text COLLATE "C" NOT NULL
);

-- What the gateway remembers of a conversation. It goes with its run.
CREATE TABLE conversations (
    org    text COLLATE "C" NOT NULL,
    run_id text COLLATE "C" NOT NULL,
    head   text COLLATE "C" NOT NULL,
    state  text NOT NULL,
    at_ms  bigint NOT NULL,
    PRIMARY KEY (org, run_id)
);
CREATE INDEX conversations_by_head ON conversations (org, head, at_ms);
