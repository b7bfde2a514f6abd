-- 0004: columns and tables for lists and aggregates; see 0004 of SQLite.
--
-- `warn_steps` and `danger_steps` change with a step and therefore have no index; `key_name` is set once.
ALTER TABLE runs
    ADD COLUMN warn_steps   bigint NOT NULL DEFAULT 0,
    ADD COLUMN danger_steps bigint NOT NULL DEFAULT 0,
    ADD COLUMN key_name     text COLLATE "C" NOT NULL DEFAULT '';

UPDATE runs r SET warn_steps = s.warn, danger_steps = s.danger
FROM (SELECT run, count(*) FILTER (WHERE total_score < 0.6) AS warn, count(*) FILTER (WHERE total_score >= 0.6) AS danger
    FROM steps WHERE total_score >= 0.35 GROUP BY run) s
WHERE r.id = s.run;

CREATE INDEX runs_of_key ON runs (org, key_name, started_ms, run_id) WHERE key_name <> '';

-- Runs in which a pattern was shown, and on how many steps; a pattern is `tier:id`.
CREATE TABLE pattern_runs (
    org        text COLLATE "C" NOT NULL,
    pattern    text COLLATE "C" NOT NULL,
    started_ms bigint NOT NULL,
    run_id     text COLLATE "C" NOT NULL,
    run        bigint NOT NULL,
    steps      bigint NOT NULL,
    PRIMARY KEY (org, pattern, started_ms, run_id)
) WITH (fillfactor = 80);
CREATE INDEX pattern_runs_of_run ON pattern_runs (run);

-- Backfill from stored steps: an injection of the form `[e1:id]` is a pattern. Texts with control characters are
-- skipped, because NUL cannot be converted here.
INSERT INTO pattern_runs (org, pattern, started_ms, run_id, run, steps)
    SELECT r.org, substr(s.shown, 2, length(s.shown) - 2), r.started_ms, r.run_id, r.id, count(DISTINCT s.step_index)
    FROM (SELECT steps.run, steps.step_index, one.value #>> '{}' AS shown
        FROM steps, json_array_elements(steps.injections::json) AS one (value)
        WHERE one.value::text ~ '^"\[e[123]:([^\\]|\\[^u])+\]"$') s
    JOIN runs r ON r.id = s.run
    GROUP BY r.id, s.shown;
