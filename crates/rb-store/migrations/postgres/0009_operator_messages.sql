-- 0009: renames the queue of operator messages and the search text of runs.
ALTER TABLE waiting RENAME TO operator_messages;
ALTER TABLE operator_messages RENAME COLUMN words_id TO message_id;
ALTER INDEX waiting_by_age RENAME TO operator_messages_by_age;
ALTER TABLE run_words RENAME TO run_search;
