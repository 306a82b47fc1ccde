-- Items of knowledge. `seq` orders them: equal scores of a search stay in this order.
CREATE TABLE items (
  seq INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
  shape TEXT NOT NULL,
  state TEXT NOT NULL,
  data TEXT NOT NULL
);
CREATE INDEX items_shape ON items (shape);

-- What happened to an item, in order: added, verified, merged, narrowed, retired, audited ...
CREATE TABLE history (
  seq INTEGER PRIMARY KEY,
  item TEXT NOT NULL,
  what TEXT NOT NULL,
  detail TEXT NOT NULL
);
CREATE INDEX history_item ON history (item);

-- How often an item was used in a situation, and helped. One row per key of a use and item.
CREATE TABLE uses (
  key TEXT NOT NULL,
  item TEXT NOT NULL,
  context TEXT NOT NULL,
  effect INTEGER NOT NULL,
  speedup REAL,
  PRIMARY KEY (key, item)
) WITHOUT ROWID;
CREATE INDEX uses_item ON uses (item, context);
