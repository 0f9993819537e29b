-- Heartbeats. Neither log nor view: nothing is decided on them, and a rebuild leaves them alone.
CREATE TABLE IF NOT EXISTS pulse(
  held TEXT PRIMARY KEY,
  holder TEXT NOT NULL,
  epoch INTEGER NOT NULL,
  count INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
