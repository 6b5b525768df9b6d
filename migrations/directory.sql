-- The whole schema of the directory, version 4. A change gets a higher version in `src/durable/schema.ts`, and a file
-- `directory_<version>.sql` that brings a database of the version before to it.
-- Times are epoch milliseconds.

-- schema: the version of this database.
CREATE TABLE meta (
  key TEXT PRIMARY KEY,
  value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- Which queues exist. route: the number that the ids of a queue's jobs carry.
-- ids_listed: 0 for a queue of an earlier release, until all ids that clients chose there are in `ids`.
CREATE TABLE queues (
  route INTEGER PRIMARY KEY,
  name TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  ids_listed INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE UNIQUE INDEX queues_name ON queues (name);
CREATE INDEX queues_unlisted ON queues (route) WHERE ids_listed = 0;

-- Workers that pull. data: JSON of what the worker said about itself and what it was told. seen_at: time of a heartbeat,
-- refreshed at most every half minute; memory knows the last one.
CREATE TABLE workers (
  id TEXT PRIMARY KEY,
  seen_at INTEGER NOT NULL,
  data TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- Which queue has the cron entry with a name.
-- others: JSON array of queues that may still have it, because the last change was cut off.
-- version: number of the last change to this name; rises over all names, for ever.
CREATE TABLE cron_places (
  name TEXT PRIMARY KEY,
  queue TEXT NOT NULL,
  others TEXT NOT NULL,
  version INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- One row: the last number given to a change of a cron entry.
CREATE TABLE cron_version (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  version INTEGER NOT NULL
) STRICT;

-- Workflows: one row each, written at the start and at the end.
-- data: JSON of a summary. Ids are UUIDv7, so they sort by time.
CREATE TABLE workflows (
  id TEXT PRIMARY KEY,
  state TEXT NOT NULL,
  data TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- One row: the settings that hold in all queues, and what operators put in the place of the limits of keys.
-- version: rises with each change. config: JSON.
-- limit_overrides: JSON, by key. It belongs to the version beside it, and is spread with the settings.
-- told_to: the queues with a route up to this one have confirmed this version, apart from those in `untold_queues`.
CREATE TABLE queue_defaults (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  version INTEGER NOT NULL,
  config TEXT NOT NULL,
  limit_overrides TEXT NOT NULL DEFAULT '{}',
  told_to INTEGER NOT NULL DEFAULT -1
) STRICT;

-- Queues that could not be told the settings when their turn came.
CREATE TABLE untold_queues (
  name TEXT PRIMARY KEY
) STRICT, WITHOUT ROWID;

-- In a shard of the directory: which queues may have a job under an id that does not name its queue. Written before
-- the job. noted_at: when it was last noted.
CREATE TABLE ids (
  id TEXT NOT NULL,
  queue TEXT NOT NULL,
  noted_at INTEGER NOT NULL,
  PRIMARY KEY (id, queue)
) STRICT, WITHOUT ROWID;

-- In the directory itself: its shards that have ids.
CREATE TABLE id_shards (
  name TEXT PRIMARY KEY
) STRICT, WITHOUT ROWID;

-- Operations on many jobs that were begun under an idempotency key.
-- hash: of the request. data: JSON of the operation's id, when it began, the queues that there were, and the one that
-- decides where it is all or nothing.
CREATE TABLE operation_keys (
  key TEXT PRIMARY KEY,
  hash TEXT NOT NULL,
  expires_at INTEGER NOT NULL,
  data TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX operation_keys_expiry ON operation_keys (expires_at);

-- In the directory itself: the subscriptions to events. told: 0 until the object of the subscription has heard of the last
-- change. data: JSON; empty for one that was deleted and whose object has not heard of it.
CREATE TABLE webhooks (
  id TEXT PRIMARY KEY,
  told INTEGER NOT NULL,
  data TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- In the object of a subscription: what was, or is to be, delivered. event: id of the event; sorts by time.
-- state: 0 pending, 1 delivered, 2 failed, 3 dead. due_at: of a pending one, when it is sent. tried_at: the last attempt.
-- body: as it is sent. log: JSON of the attempts and the beginning of the last answer.
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

-- The outbox: what has not arrived yet at another object, as in the schema of queues.
CREATE TABLE outbox (
  kind TEXT NOT NULL,
  address TEXT NOT NULL,
  number INTEGER NOT NULL,
  data TEXT NOT NULL,
  due_at INTEGER NOT NULL,
  PRIMARY KEY (kind, address, number)
) STRICT, WITHOUT ROWID;

-- In the directory itself: alert rules. data: JSON.
CREATE TABLE alerts (
  id TEXT PRIMARY KEY,
  data TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- How rules stand in the queues where they have ever fired. since: of the state. data: JSON.
CREATE TABLE alert_states (
  rule TEXT NOT NULL,
  queue TEXT NOT NULL,
  since INTEGER NOT NULL,
  data TEXT NOT NULL,
  PRIMARY KEY (rule, queue)
) STRICT, WITHOUT ROWID;

-- What operators have changed: a row for each write, the oldest removed first. No index: a write costs one row.
-- actor: the name of the key, or what stands for it. data: JSON of all of it.
CREATE TABLE audit (
  id INTEGER PRIMARY KEY,
  at INTEGER NOT NULL,
  action TEXT NOT NULL,
  actor TEXT,
  queue TEXT,
  job TEXT,
  data TEXT NOT NULL
) STRICT;

-- The schemas that the arguments of jobs must fit, by job type and version. data: JSON Schema.
CREATE TABLE schemas (
  type TEXT NOT NULL,
  version TEXT NOT NULL,
  uri TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  data TEXT NOT NULL,
  PRIMARY KEY (type, version)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX schemas_uri ON schemas (uri);
