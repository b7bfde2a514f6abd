-- 0001: the first schema.
--
-- A file is one migration; its number is the version of the schema after it, and the same change has the same number
-- on PostgreSQL. Missing migrations run in order in one transaction and are recorded in the table `migrations`. The
-- statements of a released file never change; corrections are new migrations.
--
-- Conventions. Times are milliseconds since 1970 and end in `_ms`; days are days since 1970. Sums of fractions are
-- integers in billionths and end in `_nano`, so that they can be subtracted exactly. Lists and maps are JSON, NULL if
-- empty. Absent texts are '' where the caller makes no difference. Ids and times come from the caller; the
-- row numbers `id` are internal.

-- A run with its description and the totals over its steps. `experiment_id` and `arm` are copies from `metadata` for
-- lookups. `outcome_class` is 0 success, 1 failure, 2 other, 3 unfinished. `monitors` is {monitor: [fired, low, warn,
-- danger]} and `models` is {model: [total, input, output, cache_read, cache_write, cost_nano]}: both are read and
-- written with the row on every step, which is much cheaper than rows in separate tables.
CREATE TABLE runs (
    id             INTEGER PRIMARY KEY,
    org            TEXT    NOT NULL,
    run_id         TEXT    NOT NULL,
    project        TEXT    NOT NULL,
    started_ms     INTEGER NOT NULL,
    seen_ms        INTEGER NOT NULL,
    finished_ms    INTEGER,
    outcome        TEXT,
    outcome_class  INTEGER NOT NULL,
    experiment_id  TEXT    NOT NULL,
    arm            TEXT    NOT NULL,
    step_count     INTEGER NOT NULL DEFAULT 0,
    injected_steps INTEGER NOT NULL DEFAULT 0,
    fired_steps    INTEGER NOT NULL DEFAULT 0,
    score_nano     INTEGER NOT NULL DEFAULT 0,
    score_peak     REAL    NOT NULL DEFAULT 0,
    tokens_total   INTEGER NOT NULL DEFAULT 0,
    tokens_input   INTEGER NOT NULL DEFAULT 0,
    tokens_output  INTEGER NOT NULL DEFAULT 0,
    cache_read     INTEGER NOT NULL DEFAULT 0,
    cache_write    INTEGER NOT NULL DEFAULT 0,
    cost_nano      INTEGER NOT NULL DEFAULT 0,
    agent_name     TEXT    NOT NULL,
    model          TEXT    NOT NULL,
    framework      TEXT    NOT NULL,
    codebase       TEXT    NOT NULL,
    task_profile   TEXT    NOT NULL,
    parent         TEXT    NOT NULL,
    monitors       TEXT,
    models         TEXT,
    metadata       TEXT,
    task           TEXT    NOT NULL
);

-- The id is the first column, since an operator looks up a run without its organisation.
CREATE UNIQUE INDEX runs_by_name ON runs (run_id, org);
-- One index per filter, each in the order of the list, so that a page starts with an index lookup.
CREATE INDEX runs_by_time ON runs (started_ms, org, run_id);
CREATE INDEX runs_of_org ON runs (org, started_ms, run_id);
CREATE INDEX runs_of_project ON runs (org, project, started_ms, run_id);
CREATE INDEX runs_of_agent ON runs (org, agent_name, started_ms, run_id);
CREATE INDEX runs_of_model ON runs (org, model, started_ms, run_id);
CREATE INDEX runs_by_outcome ON runs (org, outcome_class, started_ms, run_id);
CREATE INDEX runs_of_experiment ON runs (experiment_id, org, project, started_ms) WHERE experiment_id <> '';
CREATE INDEX runs_of_codebase ON runs (org, project, codebase) WHERE codebase <> '';
-- For retention.
CREATE INDEX runs_by_silence ON runs (seen_ms);

-- Runs in which a monitor fired at least once. Times and names are those of the run and never change.
CREATE TABLE fired_runs (
    org        TEXT    NOT NULL,
    monitor    TEXT    NOT NULL,
    started_ms INTEGER NOT NULL,
    run_id     TEXT    NOT NULL,
    run        INTEGER NOT NULL,
    PRIMARY KEY (org, monitor, started_ms, run_id)
) WITHOUT ROWID;

-- A step; `run` is runs.id. Rows are stored in order of arrival: clustering by run would split pages all over the
-- file, because many runs grow at the same time (measured: 2.6 times the WAL, twice the work). Columns of the totals
-- come first and texts last, so that reading the former does not touch overflow pages.
CREATE TABLE steps (
    id                  INTEGER PRIMARY KEY,
    run                 INTEGER NOT NULL,
    step_index          INTEGER NOT NULL,
    at_ms               INTEGER NOT NULL,
    total_score         REAL    NOT NULL,
    cost_usd            REAL    NOT NULL,
    tokens_total        INTEGER NOT NULL,
    tokens_input        INTEGER NOT NULL,
    tokens_output       INTEGER NOT NULL,
    cache_read          INTEGER NOT NULL,
    cache_write         INTEGER NOT NULL,
    injected            INTEGER NOT NULL,
    model               TEXT    NOT NULL,
    scores              TEXT,
    fired               TEXT,
    is_error            INTEGER NOT NULL,
    input_is_structured INTEGER NOT NULL,
    failure_type        TEXT,
    action              TEXT,
    monitors_fired      TEXT,
    injection_sources   TEXT,
    injections          TEXT,
    intervention_texts  TEXT,
    evidence            TEXT,
    metadata            TEXT,
    replay              TEXT,
    project             TEXT    NOT NULL,
    user_input          TEXT    NOT NULL,
    thought             TEXT    NOT NULL,
    action_input        TEXT,
    observation         TEXT
);

CREATE UNIQUE INDEX steps_of_run ON steps (run, step_index);

-- Daily usage of an organisation without experiment runs. Deleting a run keeps its usage.
CREATE TABLE usage (
    org           TEXT    NOT NULL,
    day           INTEGER NOT NULL,
    interventions INTEGER NOT NULL,
    steps         INTEGER NOT NULL,
    tokens        INTEGER NOT NULL,
    PRIMARY KEY (org, day)
) WITHOUT ROWID;

CREATE TABLE patterns (
    org             TEXT    NOT NULL,
    tier            TEXT    NOT NULL,
    pattern_id      TEXT    NOT NULL,
    failure_type    TEXT,
    model_family    TEXT,
    source_trace_id TEXT,
    gate_threshold  REAL,
    context         TEXT    NOT NULL,
    fields          TEXT,
    created_ms      INTEGER NOT NULL,
    updated_ms      INTEGER NOT NULL,
    uses            INTEGER NOT NULL,
    used_ms         INTEGER,
    PRIMARY KEY (org, tier, pattern_id)
);

CREATE TABLE findings (
    org          TEXT    NOT NULL,
    codebase     TEXT    NOT NULL,
    finding_id   TEXT    NOT NULL,
    file_path    TEXT    NOT NULL,
    finding_type TEXT    NOT NULL,
    created_ms   INTEGER NOT NULL,
    updated_ms   INTEGER NOT NULL,
    metadata     TEXT,
    content      TEXT    NOT NULL,
    PRIMARY KEY (org, codebase, finding_id)
);
CREATE INDEX findings_by_age ON findings (org, codebase, created_ms, finding_id);
CREATE INDEX findings_about_file ON findings (org, codebase, file_path);

CREATE TABLE profiles (
    org         TEXT    NOT NULL,
    project     TEXT    NOT NULL,
    profile_id  TEXT    NOT NULL,
    description TEXT    NOT NULL,
    weights     TEXT,
    extra       TEXT,
    created_ms  INTEGER NOT NULL,
    updated_ms  INTEGER NOT NULL,
    PRIMARY KEY (org, project, profile_id)
) WITHOUT ROWID;

-- Only hashes; the key itself is not stored.
CREATE TABLE keys (
    key_id     TEXT    NOT NULL PRIMARY KEY,
    name       TEXT    NOT NULL,
    shown      TEXT    NOT NULL,
    hash       TEXT    NOT NULL UNIQUE,
    org        TEXT    NOT NULL,
    project    TEXT    NOT NULL,
    created_ms INTEGER NOT NULL,
    revoked_ms INTEGER
) WITHOUT ROWID;

CREATE TABLE settings (
    name  TEXT NOT NULL PRIMARY KEY,
    value TEXT NOT NULL
) WITHOUT ROWID;

-- Text of the search over runs: id, task and agent name in lower case.
CREATE TABLE run_words (
    run  INTEGER PRIMARY KEY,
    text TEXT NOT NULL
);
