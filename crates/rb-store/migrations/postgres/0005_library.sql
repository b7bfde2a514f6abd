-- 0005: versions of the library, so that a node reads only the changes; see 0005 of SQLite.
--
-- A writer of a pattern holds the lock of the row in `library` until its commit, so versions become visible in order.
-- Triggers are used because nodes of an older version change patterns too.
CREATE TABLE library (version bigint NOT NULL) WITH (fillfactor = 10);
ALTER TABLE patterns ADD COLUMN version bigint NOT NULL DEFAULT 0;
UPDATE patterns p SET version = o.place
FROM (SELECT org, tier, pattern_id, row_number() OVER (ORDER BY org, tier, pattern_id) AS place FROM patterns) o
WHERE p.org = o.org AND p.tier = o.tier AND p.pattern_id = o.pattern_id;
INSERT INTO library (version) SELECT coalesce(max(version), 0) FROM patterns;
CREATE INDEX patterns_by_version ON patterns (version);
CREATE INDEX patterns_in_order ON patterns (tier, pattern_id, org);

CREATE TABLE patterns_gone (
    org        text COLLATE "C" NOT NULL,
    tier       text COLLATE "C" NOT NULL,
    pattern_id text COLLATE "C" NOT NULL,
    version    bigint NOT NULL,
    PRIMARY KEY (org, tier, pattern_id)
);
CREATE INDEX patterns_gone_by_version ON patterns_gone (version);

CREATE FUNCTION library_has_more() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE library SET version = version + 1 RETURNING version INTO NEW.version;
    DELETE FROM patterns_gone WHERE org = NEW.org AND tier = NEW.tier AND pattern_id = NEW.pattern_id;
    RETURN NEW;
END $$;

CREATE FUNCTION library_has_less() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    next bigint;
BEGIN
    UPDATE library SET version = version + 1 RETURNING version INTO next;
    INSERT INTO patterns_gone (org, tier, pattern_id, version) VALUES (OLD.org, OLD.tier, OLD.pattern_id, next)
        ON CONFLICT (org, tier, pattern_id) DO UPDATE SET version = excluded.version;
    RETURN NULL;
END $$;

-- Counting a use sets none of these columns.
CREATE TRIGGER library_has_more BEFORE INSERT OR UPDATE OF context, fields, failure_type, model_family, gate_threshold
    ON patterns FOR EACH ROW EXECUTE FUNCTION library_has_more();
CREATE TRIGGER library_has_less AFTER DELETE ON patterns FOR EACH ROW EXECUTE FUNCTION library_has_less();
