-- The log. Rows are never changed.
CREATE TABLE IF NOT EXISTS event(
  seq INTEGER PRIMARY KEY,
  prev INTEGER NOT NULL,      -- the event before this one on the same subject; 0 for none
  id BLOB NOT NULL,
  at INTEGER NOT NULL,
  format INTEGER NOT NULL,
  kind TEXT NOT NULL,
  subject TEXT NOT NULL,
  actor TEXT NOT NULL,
  cause TEXT,
  due INTEGER NOT NULL,
  data TEXT NOT NULL,
  hash BLOB NOT NULL
) STRICT;
