-- README.md explains the tables.

CREATE TABLE meta (
  key TEXT PRIMARY KEY,
  value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE queues (
  route INTEGER PRIMARY KEY,
  name TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  ids_listed INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE UNIQUE INDEX queues_name ON queues (name);
CREATE INDEX queues_unlisted ON queues (route) WHERE ids_listed = 0;

CREATE TABLE workers (
  id TEXT PRIMARY KEY,
  seen_at INTEGER NOT NULL,
  data TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE cron_places (
  name TEXT PRIMARY KEY,
  queue TEXT NOT NULL,
  others TEXT NOT NULL,
  version INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE cron_version (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  version INTEGER NOT NULL
) STRICT;

CREATE TABLE workflows (
  id TEXT PRIMARY KEY,
  state TEXT NOT NULL,
  data TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE queue_defaults (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  version INTEGER NOT NULL,
  config TEXT NOT NULL,
  limit_overrides TEXT NOT NULL DEFAULT '{}',
  told_to INTEGER NOT NULL DEFAULT -1
) STRICT;

CREATE TABLE untold_queues (
  name TEXT PRIMARY KEY
) STRICT, WITHOUT ROWID;

CREATE TABLE ids (
  id TEXT NOT NULL,
  queue TEXT NOT NULL,
  noted_at INTEGER NOT NULL,
  PRIMARY KEY (id, queue)
) STRICT, WITHOUT ROWID;

CREATE TABLE id_shards (
  name TEXT PRIMARY KEY
) STRICT, WITHOUT ROWID;

CREATE TABLE operation_keys (
  key TEXT PRIMARY KEY,
  hash TEXT NOT NULL,
  expires_at INTEGER NOT NULL,
  data TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX operation_keys_expiry ON operation_keys (expires_at);

CREATE TABLE webhooks (
  id TEXT PRIMARY KEY,
  told INTEGER NOT NULL,
  data TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE deliveries (
  event TEXT PRIMARY KEY,
  type TEXT NOT NULL,
  state INTEGER NOT NULL,
  tries INTEGER NOT NULL,
  due_at INTEGER,
  tried_at INTEGER,
  created_at INTEGER NOT NULL,
  body TEXT NOT NULL,
  log TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE outbox (
  kind TEXT NOT NULL,
  address TEXT NOT NULL,
  number INTEGER NOT NULL,
  data TEXT NOT NULL,
  due_at INTEGER NOT NULL,
  PRIMARY KEY (kind, address, number)
) STRICT, WITHOUT ROWID;

CREATE TABLE alerts (
  id TEXT PRIMARY KEY,
  data TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE alert_states (
  rule TEXT NOT NULL,
  queue TEXT NOT NULL,
  since INTEGER NOT NULL,
  data TEXT NOT NULL,
  PRIMARY KEY (rule, queue)
) STRICT, WITHOUT ROWID;

CREATE TABLE audit (
  id INTEGER PRIMARY KEY,
  at INTEGER NOT NULL,
  action TEXT NOT NULL,
  actor TEXT,
  queue TEXT,
  job TEXT,
  data TEXT NOT NULL
) STRICT;

CREATE TABLE schemas (
  type TEXT NOT NULL,
  version TEXT NOT NULL,
  uri TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  data TEXT NOT NULL,
  PRIMARY KEY (type, version)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX schemas_uri ON schemas (uri);

CREATE TABLE keys (
  id TEXT PRIMARY KEY,
  hash TEXT NOT NULL,
  data TEXT NOT NULL,
  used_at INTEGER
) STRICT, WITHOUT ROWID;
