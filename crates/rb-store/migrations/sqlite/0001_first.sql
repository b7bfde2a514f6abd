-- 0001: everything that is kept from the first version on.
--
-- How to read this folder. A file is one migration; its number is the version of the schema after it. They run in
-- order, all that are due in one transaction, and are recorded in the table `migrations`. A file that has been
-- released is never changed: what is wrong with it is put right by the next number.
--
-- Habits. Times are milliseconds since 1970 and end in `_ms`; days are days since 1970. Sums of fractions are whole
-- numbers of billionths and end in `_nano`, so that what was added can be taken away again exactly. Lists and maps are
-- JSON, NULL where they are empty. Absent texts are '' where the caller knows no difference. No value is made here:
-- ids and times come from the caller.

-- A run: what it said about itself, and its steps in numbers. `experiment_id` and `arm` stand in `metadata` too; they
-- are here to be looked up. `outcome_class` is 0 success, 1 failure, 2 other, 3 unfinished.
-- `monitors` is {monitor: [fired, low, warn, danger]} and `models` is
-- {model: [total, input, output, cache_read, cache_write, cost_nano]}: both are read and written with the row on every
-- step, which costs a fraction of a row each in a table of their own.
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

-- By name; the id comes first, since the operator looks a run up without its organisation.
CREATE UNIQUE INDEX runs_by_name ON runs (run_id, org);
-- One index a filter, each in the order of the list, so that a page is read from where it begins.
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

-- In which runs a monitor fired at least once. Times and names are those of the run and never change.
CREATE TABLE fired_runs (
    org        TEXT    NOT NULL,
    monitor    TEXT    NOT NULL,
    started_ms INTEGER NOT NULL,
    run_id     TEXT    NOT NULL,
    run        INTEGER NOT NULL,
    PRIMARY KEY (org, monitor, started_ms, run_id)
) WITHOUT ROWID;

-- A step; `run` is runs.id. Rows lie in the order they came in: many runs grow at once, and putting each step beside its
-- neighbours of the same run would tear pages apart all over the file (in a trial: 2.6 times the journal, twice the
-- work). What the sums need comes first; the texts come last, where reading the front of a row does not touch them.
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

-- What an organisation used on a day, runs of experiments left out. Deleting a run does not give it back.
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

-- Hashes only; a key itself is never kept.
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

-- What the search over runs looks in: id, task and agent's name, in small letters.
CREATE TABLE run_words (
    run  INTEGER PRIMARY KEY,
    text TEXT NOT NULL
);
