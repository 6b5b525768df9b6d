-- From version 3, which 0.1.0 stores: subscriptions to events, what is delivered to them, and alert rules; what operators have changed;
-- and the schemas that the arguments of jobs must fit.

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
