-- 0003: version of a run, for optimistic concurrency control.
ALTER TABLE runs ADD COLUMN version INTEGER NOT NULL DEFAULT 0;
UPDATE runs SET version = 1 + step_count;
