-- 0010: the name of the run's FSM state after the step; empty for steps that were stored before.
ALTER TABLE steps ADD COLUMN state TEXT NOT NULL DEFAULT '';
