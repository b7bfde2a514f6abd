-- 0005: versions of the library, so that a server reads only the changes.
--
-- Every put or deletion of a pattern increases the version. Counting a use does not.
CREATE TABLE library (version INTEGER NOT NULL);
ALTER TABLE patterns ADD COLUMN version INTEGER NOT NULL DEFAULT 0;
UPDATE patterns SET version = rowid;
INSERT INTO library (version) SELECT coalesce(max(version), 0) FROM patterns;
CREATE INDEX patterns_by_version ON patterns (version);
CREATE INDEX patterns_in_order ON patterns (tier, pattern_id, org);

-- Deleted patterns.
CREATE TABLE patterns_gone (
    org        TEXT    NOT NULL,
    tier       TEXT    NOT NULL,
    pattern_id TEXT    NOT NULL,
    version    INTEGER NOT NULL,
    PRIMARY KEY (org, tier, pattern_id)
) WITHOUT ROWID;
CREATE INDEX patterns_gone_by_version ON patterns_gone (version);

-- A replaced pattern is inserted again.
CREATE TRIGGER library_has_more AFTER INSERT ON patterns BEGIN
    UPDATE library SET version = version + 1;
    UPDATE patterns SET version = (SELECT version FROM library) WHERE rowid = new.rowid;
    DELETE FROM patterns_gone WHERE org = new.org AND tier = new.tier AND pattern_id = new.pattern_id;
END;

CREATE TRIGGER library_has_less AFTER DELETE ON patterns BEGIN
    UPDATE library SET version = version + 1;
    INSERT OR REPLACE INTO patterns_gone (org, tier, pattern_id, version)
        SELECT old.org, old.tier, old.pattern_id, version FROM library;
END;
