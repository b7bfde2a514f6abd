-- 0002: what nodes tell each other, such as which steps were stored.
--
-- A row is read by every other node within a second and deleted after a minute. A node whose connection was cut reads
-- what it missed from here, which a bare NOTIFY would not give it. Nothing of it has to survive a crash.
CREATE UNLOGGED TABLE told (
    id      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    node    text NOT NULL,
    at      timestamptz NOT NULL DEFAULT now(),
    message text NOT NULL
);
