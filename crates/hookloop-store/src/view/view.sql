-- Everything below is derived from the log and can be made again from it.

-- One row: how far the view is, where reactions are, and how many tasks are in each state.
CREATE TABLE totals(
  head INTEGER NOT NULL,
  hash BLOB NOT NULL,
  cursor INTEGER NOT NULL,
  cursor_part TEXT,
  created INTEGER NOT NULL, ready INTEGER NOT NULL, active INTEGER NOT NULL,
  submitted INTEGER NOT NULL, completed INTEGER NOT NULL, blocked INTEGER NOT NULL,
  deleted INTEGER NOT NULL,
  runs_completed INTEGER NOT NULL, runs_failed INTEGER NOT NULL,
  quarantined INTEGER NOT NULL,       -- messages that are no events
  removed_accepted INTEGER NOT NULL   -- removed messages of the stream whose loss a person accepted
) STRICT;
INSERT INTO totals VALUES (0, zeroblob(32), 0, NULL, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);

-- Messages of a shared log that are no events: the first of them, by their place in the log.
CREATE TABLE quarantine(seq INTEGER PRIMARY KEY, subject TEXT NOT NULL, reason TEXT NOT NULL,
  accepted INTEGER NOT NULL) STRICT;

-- state: 0 open (created or ready, by open_deps), 1 active, 2 submitted, 3 completed, 4 blocked, 5 deleted
CREATE TABLE task(
  num INTEGER PRIMARY KEY,
  id TEXT NOT NULL,
  version INTEGER NOT NULL,
  state INTEGER NOT NULL,
  open_deps INTEGER NOT NULL,
  announced INTEGER NOT NULL,
  priority INTEGER NOT NULL,
  kind TEXT,
  epoch INTEGER NOT NULL,     -- claims so far
  claim TEXT,                 -- who holds it
  not_before INTEGER,         -- where that is after its creation
  created_at INTEGER NOT NULL,
  started_at INTEGER,
  completed_at INTEGER,
  parent INTEGER,
  spec TEXT NOT NULL,
  detail TEXT
) STRICT;
CREATE UNIQUE INDEX task_id ON task(id);
CREATE INDEX task_ready ON task(priority, num) WHERE state = 0 AND open_deps = 0 AND not_before IS NULL;
CREATE INDEX task_ready_kind ON task(kind, priority, num)
  WHERE state = 0 AND open_deps = 0 AND not_before IS NULL AND kind IS NOT NULL;
-- Those that have to wait for a time, or had to: by the time, because that is what they are asked for by.
CREATE INDEX task_timed ON task(priority, not_before, num)
  WHERE state = 0 AND open_deps = 0 AND not_before IS NOT NULL;
CREATE INDEX task_timed_kind ON task(kind, priority, not_before, num)
  WHERE state = 0 AND open_deps = 0 AND not_before IS NOT NULL AND kind IS NOT NULL;
CREATE INDEX task_time ON task(not_before) WHERE state = 0 AND open_deps = 0 AND not_before IS NOT NULL;
CREATE INDEX task_claimed ON task(num) WHERE claim IS NOT NULL;
-- Spelled out: with IN, every change of a state would build a table of the three.
CREATE INDEX task_busy ON task(state, num) WHERE state = 1 OR state = 2 OR state = 4;
CREATE INDEX task_parent ON task(parent, num) WHERE parent IS NOT NULL;

-- Tasks that were left by somebody who fell silent, and that nobody has taken since.
CREATE TABLE orphan(task INTEGER PRIMARY KEY) STRICT;

CREATE TABLE edge(task INTEGER NOT NULL, needs INTEGER NOT NULL, PRIMARY KEY(task, needs)) STRICT, WITHOUT ROWID;
CREATE INDEX edge_needs ON edge(needs, task);

-- What is said about a task beside its state. kind: 0 stop hook, 1 note, 2 checkpoint
CREATE TABLE remark(task INTEGER NOT NULL, kind INTEGER NOT NULL, seq INTEGER NOT NULL, number INTEGER NOT NULL,
  at INTEGER NOT NULL, actor TEXT NOT NULL, data TEXT NOT NULL, PRIMARY KEY(task, kind, seq)) STRICT, WITHOUT ROWID;

-- What became of the work of tasks that was submitted, or went back; `seq` is where it was submitted last.
CREATE TABLE delivery(task INTEGER PRIMARY KEY, seq INTEGER NOT NULL, data TEXT NOT NULL) STRICT;

-- What needs a human: one row for each subject that does. `seq` is the event that said so.
CREATE TABLE problem(about TEXT PRIMARY KEY, key TEXT NOT NULL, seq INTEGER NOT NULL, at INTEGER NOT NULL, actor TEXT NOT NULL,
  kind TEXT NOT NULL, reason TEXT NOT NULL, dismissed INTEGER NOT NULL) STRICT, WITHOUT ROWID;

-- Messages to people. state: 0 claimed, 1 sent or not needed any more, 2 failed
CREATE TABLE notice(id TEXT PRIMARY KEY, channel TEXT NOT NULL, state INTEGER NOT NULL, tries INTEGER NOT NULL,
  seq INTEGER NOT NULL, problems TEXT NOT NULL) STRICT, WITHOUT ROWID;
CREATE INDEX notice_open ON notice(channel) WHERE state <> 1;
-- Which problems each channel was told of, or is about to be.
CREATE TABLE told(channel TEXT NOT NULL, problem TEXT NOT NULL, PRIMARY KEY(channel, problem)) STRICT, WITHOUT ROWID;

-- Versions of the subjects that are not tasks.
CREATE TABLE subject(name TEXT PRIMARY KEY, version INTEGER NOT NULL) STRICT, WITHOUT ROWID;

-- Events whose reactions the dispatcher owes.
CREATE TABLE due(seq INTEGER PRIMARY KEY) STRICT;

-- Actions so far of the roots that have something left to do; empty when nothing is.
CREATE TABLE cascade(root BLOB PRIMARY KEY, count INTEGER NOT NULL) STRICT, WITHOUT ROWID;

CREATE TABLE hook_switch(name TEXT PRIMARY KEY, enabled INTEGER NOT NULL) STRICT, WITHOUT ROWID;

-- What the runs of each hook came to. How long they took is counted by size: n is for 2^(n/4) ms.
CREATE TABLE hook_runs(name TEXT PRIMARY KEY, runs INTEGER NOT NULL, failures INTEGER NOT NULL,
  blocks INTEGER NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE hook_time(name TEXT NOT NULL, size INTEGER NOT NULL, runs INTEGER NOT NULL,
  PRIMARY KEY(name, size)) STRICT, WITHOUT ROWID;

-- Tasks that come again; `next` is when, unless it is paused or over.
CREATE TABLE schedule(name TEXT PRIMARY KEY, data TEXT NOT NULL, paused INTEGER NOT NULL, next INTEGER,
  last TEXT) STRICT, WITHOUT ROWID;
CREATE INDEX schedule_next ON schedule(next) WHERE next IS NOT NULL;

-- Workflow runs in progress: few, and gone when they are over.
CREATE TABLE run(
  num INTEGER PRIMARY KEY,
  id TEXT NOT NULL,
  workflow TEXT NOT NULL,
  next_step INTEGER NOT NULL,
  steps TEXT NOT NULL,
  cause TEXT
) STRICT;

-- Sessions: one row each, however many events they have.
CREATE TABLE session(
  num INTEGER PRIMARY KEY,
  id TEXT NOT NULL,
  name TEXT NOT NULL,
  state TEXT NOT NULL,
  reason TEXT,
  work TEXT NOT NULL,
  agent TEXT NOT NULL,
  machine TEXT NOT NULL,
  iteration INTEGER NOT NULL,
  asks INTEGER NOT NULL,      -- which ends of it need a human: 0 none, 1 when it is stuck, 2 limits too
  task TEXT,
  tokens INTEGER NOT NULL,
  cost_micros INTEGER NOT NULL,
  unpriced_turns INTEGER NOT NULL DEFAULT 0, -- turns whose cost is unknown
  started_at INTEGER NOT NULL,
  ended_at INTEGER,
  proven INTEGER NOT NULL DEFAULT 0 -- gates passed on the files as they are at the end
) STRICT;
CREATE UNIQUE INDEX session_id ON session(id);
CREATE INDEX session_open ON session(num) WHERE ended_at IS NULL;

-- What turns used, by the day (UTC, counted from 1970) that they ended on. No task is ''.
CREATE TABLE usage(
  day INTEGER NOT NULL,
  session TEXT NOT NULL,
  task TEXT NOT NULL,
  agent TEXT NOT NULL,
  turns INTEGER NOT NULL,
  input_tokens INTEGER NOT NULL,
  cached_tokens INTEGER NOT NULL,
  output_tokens INTEGER NOT NULL,
  cost_micros INTEGER NOT NULL,
  unpriced_turns INTEGER NOT NULL, -- turns whose cost is unknown
  PRIMARY KEY(day, session, task, agent)
) STRICT, WITHOUT ROWID;

-- The usage of each day in one row, so that no turn has to add it up, and the written-off reservations.
CREATE TABLE spent(day INTEGER PRIMARY KEY, cost_micros INTEGER NOT NULL, tokens INTEGER NOT NULL,
  turns INTEGER NOT NULL, lost_cost_micros INTEGER NOT NULL, lost_tokens INTEGER NOT NULL,
  lost_turns INTEGER NOT NULL) STRICT;

-- What those who run the fleet have said last about each thing.
CREATE TABLE fleet(key TEXT PRIMARY KEY, at INTEGER NOT NULL, actor TEXT NOT NULL, data TEXT NOT NULL) STRICT, WITHOUT ROWID;

-- Reservations of the budget: one row for each running turn, and for each turn whose program died.
CREATE TABLE reservation(session TEXT PRIMARY KEY, day INTEGER NOT NULL, cost_micros INTEGER NOT NULL,
  tokens INTEGER NOT NULL, turns INTEGER NOT NULL) STRICT, WITHOUT ROWID;
