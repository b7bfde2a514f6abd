-- 0008: events that nodes publish to each other, such as stored steps. Only for databases with several nodes, so SQLite
-- has no such migration.
--
-- Every other node reads a row within a second; rows are deleted after a minute. A node whose connection was interrupted
-- reads the events it missed from here, which NOTIFY alone would not deliver. The table is unlogged because events need
-- not survive a crash. It replaces `told`, which took its time from the server's clock.
DROP TABLE IF EXISTS told;
CREATE UNLOGGED TABLE node_events (
    id      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    node    text NOT NULL,
    at_ms   bigint NOT NULL,
    message text NOT NULL
);
