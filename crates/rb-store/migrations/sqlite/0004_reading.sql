-- 0004: columns and tables for lists and aggregates.
--
-- `warn_steps` and `danger_steps` count the steps with a composite from 0.35 and from 0.6. `key_name` is the name of
-- the API key that reported the run first.
ALTER TABLE runs ADD COLUMN warn_steps INTEGER NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN danger_steps INTEGER NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN key_name TEXT NOT NULL DEFAULT '';

UPDATE runs SET
    warn_steps = (SELECT count(*) FROM steps WHERE run = runs.id AND total_score >= 0.35 AND total_score < 0.6),
    danger_steps = (SELECT count(*) FROM steps WHERE run = runs.id AND total_score >= 0.6)
WHERE score_peak >= 0.35;

CREATE INDEX runs_of_key ON runs (org, key_name, started_ms, run_id) WHERE key_name <> '';

-- Runs in which a pattern was shown, and on how many steps; a pattern is `tier:id`. Times and names are those of the
-- run and never change.
CREATE TABLE pattern_runs (
    org        TEXT    NOT NULL,
    pattern    TEXT    NOT NULL,
    started_ms INTEGER NOT NULL,
    run_id     TEXT    NOT NULL,
    run        INTEGER NOT NULL,
    steps      INTEGER NOT NULL,
    PRIMARY KEY (org, pattern, started_ms, run_id)
) WITHOUT ROWID;

CREATE INDEX pattern_runs_of_run ON pattern_runs (run);

-- Backfill from stored steps: an injection of the form `[e1:id]` is a pattern.
INSERT INTO pattern_runs (org, pattern, started_ms, run_id, run, steps)
    SELECT runs.org, substr(shown.value, 2, length(shown.value) - 2), runs.started_ms, runs.run_id, runs.id,
        count(DISTINCT steps.id)
    FROM steps JOIN runs ON runs.id = steps.run, json_each(steps.injections) AS shown
    WHERE steps.injections IS NOT NULL AND shown.value GLOB '[[]e[123]:?*]'
    GROUP BY runs.id, shown.value;

CREATE TRIGGER pattern_runs_go_with_runs AFTER DELETE ON runs BEGIN
    DELETE FROM pattern_runs WHERE run = old.id;
END;
