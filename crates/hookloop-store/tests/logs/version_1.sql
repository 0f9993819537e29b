-- The tables of a file of version 1, as hookloop made them.
CREATE TABLE event(
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

CREATE TABLE totals(
  head INTEGER NOT NULL,
  hash BLOB NOT NULL,
  cursor INTEGER NOT NULL,
  cursor_part TEXT,
  created INTEGER NOT NULL, ready INTEGER NOT NULL, active INTEGER NOT NULL,
  submitted INTEGER NOT NULL, completed INTEGER NOT NULL, blocked INTEGER NOT NULL,
  deleted INTEGER NOT NULL,
  runs_completed INTEGER NOT NULL, runs_failed INTEGER NOT NULL
) STRICT;
INSERT INTO totals VALUES (0, zeroblob(32), 0, NULL, 0, 0, 0, 0, 0, 0, 0, 0, 0);

CREATE TABLE task(
  num INTEGER PRIMARY KEY,
  id TEXT NOT NULL,
  version INTEGER NOT NULL,
  state INTEGER NOT NULL,
  open_deps INTEGER NOT NULL,
  announced INTEGER NOT NULL,
  priority INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  started_at INTEGER,
  completed_at INTEGER,
  parent INTEGER,
  spec TEXT NOT NULL,
  detail TEXT
) STRICT;
CREATE UNIQUE INDEX task_id ON task(id);
CREATE INDEX task_ready ON task(priority, num) WHERE state = 0 AND open_deps = 0;
CREATE INDEX task_busy ON task(state, num) WHERE state IN (1, 2, 4);
CREATE INDEX task_parent ON task(parent, num) WHERE parent IS NOT NULL;

CREATE TABLE edge(task INTEGER NOT NULL, needs INTEGER NOT NULL, PRIMARY KEY(task, needs)) STRICT, WITHOUT ROWID;
CREATE INDEX edge_needs ON edge(needs, task);

CREATE TABLE subject(name TEXT PRIMARY KEY, version INTEGER NOT NULL) STRICT, WITHOUT ROWID;

CREATE TABLE due(seq INTEGER PRIMARY KEY) STRICT;

CREATE TABLE cascade(root BLOB PRIMARY KEY, count INTEGER NOT NULL) STRICT, WITHOUT ROWID;

CREATE TABLE hook_switch(name TEXT PRIMARY KEY, enabled INTEGER NOT NULL) STRICT, WITHOUT ROWID;

CREATE TABLE run(
  num INTEGER PRIMARY KEY,
  id TEXT NOT NULL,
  workflow TEXT NOT NULL,
  next_step INTEGER NOT NULL,
  steps TEXT NOT NULL,
  cause TEXT
) STRICT;
PRAGMA user_version = 1;
