-- README.md explains the tables.

CREATE TABLE meta (
  key TEXT PRIMARY KEY,
  value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE jobs (
  key INTEGER PRIMARY KEY,
  alias TEXT,
  state INTEGER NOT NULL,
  type TEXT NOT NULL,
  priority INTEGER NOT NULL,
  due_at INTEGER,
  attempt INTEGER NOT NULL,
  claims INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  enqueued_at INTEGER NOT NULL,
  expires_at INTEGER,
  ended_at INTEGER,
  body TEXT NOT NULL,
  history TEXT,
  limit_key TEXT,
  waits_since INTEGER,
  keep_until INTEGER,
  meters TEXT,
  holds_group TEXT
) STRICT;

CREATE INDEX jobs_due ON jobs (priority, due_at, attempt) WHERE due_at IS NOT NULL;
CREATE INDEX jobs_expiry ON jobs (expires_at) WHERE expires_at IS NOT NULL AND ended_at IS NULL;

CREATE INDEX jobs_pending ON jobs (state) WHERE state = 1;
CREATE INDEX jobs_holders ON jobs (holds_group) WHERE holds_group IS NOT NULL;

CREATE INDEX jobs_ended ON jobs (state, (keep_until IS NULL), ended_at) WHERE ended_at IS NOT NULL;
CREATE INDEX jobs_kept ON jobs (keep_until) WHERE keep_until IS NOT NULL AND ended_at IS NOT NULL;

CREATE TABLE blocks (
  first INTEGER PRIMARY KEY,
  span INTEGER NOT NULL,
  jobs INTEGER NOT NULL,
  gone TEXT,
  heads TEXT NOT NULL,
  data TEXT NOT NULL
) STRICT;

CREATE TABLE due_blocks (
  first INTEGER PRIMARY KEY,
  span INTEGER NOT NULL,
  jobs INTEGER NOT NULL,
  priority INTEGER NOT NULL,
  due_at INTEGER NOT NULL,
  gone TEXT,
  heads TEXT NOT NULL,
  data TEXT NOT NULL
) STRICT;
CREATE INDEX due_blocks_due ON due_blocks (priority, due_at);

CREATE TABLE retry_blocks (
  block INTEGER PRIMARY KEY,
  sequence INTEGER NOT NULL,
  gone TEXT,
  heads TEXT NOT NULL,
  data TEXT NOT NULL
) STRICT;

CREATE TABLE leases (
  id INTEGER PRIMARY KEY,
  data TEXT NOT NULL,
  job TEXT
) STRICT;

CREATE TABLE archive (
  chunk INTEGER PRIMARY KEY,
  lo INTEGER NOT NULL,
  hi INTEGER NOT NULL,
  jobs INTEGER NOT NULL,
  ended_at INTEGER NOT NULL,
  data TEXT NOT NULL,
  meters TEXT
) STRICT;
CREATE INDEX archive_lo ON archive (lo);

CREATE TABLE results (
  key INTEGER PRIMARY KEY,
  value TEXT NOT NULL
) STRICT;

CREATE TABLE aliases (
  id TEXT PRIMARY KEY,
  key INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE unique_keys (
  fingerprint TEXT NOT NULL,
  key INTEGER NOT NULL,
  PRIMARY KEY (fingerprint, key)
) STRICT, WITHOUT ROWID;

CREATE TABLE progress (
  key INTEGER PRIMARY KEY,
  claim INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,
  data TEXT NOT NULL
) STRICT;

CREATE TABLE checkpoints (
  key INTEGER PRIMARY KEY,
  sequence INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  data TEXT NOT NULL
) STRICT;

CREATE TABLE step_values (
  key INTEGER NOT NULL,
  name TEXT NOT NULL,
  part INTEGER NOT NULL,
  data TEXT NOT NULL,
  PRIMARY KEY (key, name, part)
) STRICT, WITHOUT ROWID;

CREATE TABLE stream_chunks (
  key INTEGER NOT NULL,
  name TEXT NOT NULL,
  run INTEGER NOT NULL,
  n INTEGER NOT NULL,
  writer TEXT,
  data TEXT NOT NULL,
  PRIMARY KEY (key, name, run, n)
) STRICT, WITHOUT ROWID;

CREATE TABLE limit_keys (
  key TEXT PRIMARY KEY,
  check_at INTEGER,
  data TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX limit_keys_check ON limit_keys (check_at) WHERE check_at IS NOT NULL;

CREATE TABLE group_starts (
  id INTEGER PRIMARY KEY,
  at INTEGER NOT NULL,
  data TEXT NOT NULL
) STRICT;

CREATE TABLE crons (
  name TEXT PRIMARY KEY,
  version INTEGER NOT NULL,
  status INTEGER NOT NULL,
  at INTEGER NOT NULL,
  data TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE cron_runs (
  name TEXT PRIMARY KEY,
  next_at INTEGER,
  open INTEGER NOT NULL,
  data TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE tasks (
  id TEXT PRIMARY KEY,
  data TEXT NOT NULL,
  done_at INTEGER
) STRICT, WITHOUT ROWID;

CREATE TABLE inbox (
  key TEXT NOT NULL,
  part INTEGER NOT NULL,
  hash TEXT NOT NULL,
  expires_at INTEGER NOT NULL,
  data TEXT NOT NULL,
  PRIMARY KEY (key, part)
) STRICT, WITHOUT ROWID;
CREATE INDEX inbox_expiry ON inbox (expires_at);

CREATE TABLE workflow_starts (
  workflow TEXT NOT NULL,
  first INTEGER NOT NULL,
  data TEXT NOT NULL,
  PRIMARY KEY (workflow, first)
) STRICT, WITHOUT ROWID;

CREATE TABLE outbox (
  kind TEXT NOT NULL,
  address TEXT NOT NULL,
  number INTEGER NOT NULL,
  data TEXT NOT NULL,
  due_at INTEGER NOT NULL,
  PRIMARY KEY (kind, address, number)
) STRICT, WITHOUT ROWID;

CREATE TABLE meters (
  id INTEGER PRIMARY KEY,
  version INTEGER NOT NULL,
  sequence INTEGER,
  data TEXT NOT NULL
) STRICT;
