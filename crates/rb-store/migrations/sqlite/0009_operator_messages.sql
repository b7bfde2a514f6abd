-- 0009: renames the queue of operator messages and the search text of runs.
DROP TRIGGER waiting_goes_with_runs;
DROP INDEX waiting_by_age;
ALTER TABLE waiting RENAME TO operator_messages;
ALTER TABLE operator_messages RENAME COLUMN words_id TO message_id;
CREATE INDEX operator_messages_by_age ON operator_messages (at_ms, org, run_id);
CREATE TRIGGER operator_messages_go_with_runs AFTER DELETE ON runs BEGIN
    DELETE FROM operator_messages WHERE org = old.org AND run_id = old.run_id;
END;
ALTER TABLE run_words RENAME TO run_search;
