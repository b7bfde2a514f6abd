-- 0001: the first schema, for several nodes.
--
-- A file is one migration; its number is the version of the schema after it, and the same change has the same number
-- on SQLite. Missing migrations run in one transaction under an advisory lock, so one of several starting nodes
-- migrates and the others wait. The statements of a released file never change.
--
-- Conventions. Tables and columns are those of SQLite, for the same reasons, unless a comment states otherwise. Texts
-- have the collation "C": they are compared by bytes on every machine and backend. NUL, which PostgreSQL does not
-- accept, is stored as two characters (`text.rs`). There are no foreign keys: a writer already holds the lock of the
-- run, and a foreign key would be checked again for every step.

-- A run with its description and the totals over its steps. The row is updated with every step, so columns that
-- change with a step are not indexed: updates then stay in their page and touch no index (HOT). For this reason
-- retention uses a day instead of a time, and pages are filled to two thirds. `version` counts the writes; it is 0 in
-- a row that the current transaction has created.
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

-- Runs in which a monitor fired at least once.
CREATE TABLE fired_runs (
    org        text COLLATE "C" NOT NULL,
    monitor    text COLLATE "C" NOT NULL,
    started_ms bigint NOT NULL,
    run_id     text COLLATE "C" NOT NULL,
    run        bigint NOT NULL,
    PRIMARY KEY (org, monitor, started_ms, run_id)
);
CREATE INDEX fired_runs_of_run ON fired_runs (run);

-- A step; `run` is runs.id. Rows are stored in order of arrival, so rows that expire together are adjacent. Rows
-- rarely change, hence the autovacuum settings.
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

-- Daily usage of an organisation, in several rows that are summed when read: with a single row, all writers of an
-- organisation would wait for each other's commit. A single row may be negative, the sum is not.
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

-- Only hashes; the key itself is not stored.
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

-- Text of the search over runs: id, task and agent name in lower case. Separate from the run, whose row is updated
-- with every step.
CREATE TABLE run_words (
    run  bigint NOT NULL PRIMARY KEY,
    text text COLLATE "C" NOT NULL
);

-- Gateway state of a conversation, deleted with its run.
CREATE TABLE conversations (
    org    text COLLATE "C" NOT NULL,
    run_id text COLLATE "C" NOT NULL,
    head   text COLLATE "C" NOT NULL,
    state  text NOT NULL,
    at_ms  bigint NOT NULL,
    PRIMARY KEY (org, run_id)
);
CREATE INDEX conversations_by_head ON conversations (org, head, at_ms);
