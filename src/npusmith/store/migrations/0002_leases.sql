-- Who works on a unit, and until when that holds without a sign of life (seconds since 1970).
ALTER TABLE units ADD COLUMN owner TEXT NOT NULL DEFAULT '';
ALTER TABLE units ADD COLUMN lease REAL NOT NULL DEFAULT 0;
CREATE INDEX open_units ON units (id) WHERE done = 0;
CREATE INDEX leased_units ON units (owner) WHERE done = 0 AND owner <> '';
