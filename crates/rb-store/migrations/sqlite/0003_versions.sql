-- 0003: how often a run was changed, so that whoever decides by what he read can see that it is still so.
ALTER TABLE runs ADD COLUMN version INTEGER NOT NULL DEFAULT 0;
UPDATE runs SET version = 1 + step_count;
