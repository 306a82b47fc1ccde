-- What a model-driven writer did: sessions, their turns, and candidates judged before.
CREATE TABLE sessions (
  name TEXT PRIMARY KEY,
  terms TEXT NOT NULL,
  ending TEXT NOT NULL DEFAULT ''
) WITHOUT ROWID;

-- A turn is asked, then answered, then judged. Tokens and usd: the most that the call may take,
-- until there is an answer; from then on what it took.
CREATE TABLE turns (
  session TEXT NOT NULL REFERENCES sessions (name),
  number INTEGER NOT NULL,
  data TEXT NOT NULL,
  request BLOB NOT NULL,
  tokens INTEGER NOT NULL,
  usd REAL NOT NULL,
  reply BLOB,
  outcome BLOB,
  PRIMARY KEY (session, number)
) WITHOUT ROWID;

CREATE TABLE judged (key TEXT PRIMARY KEY, data BLOB NOT NULL) WITHOUT ROWID;
