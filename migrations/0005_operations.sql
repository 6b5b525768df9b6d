-- Operations that outlive a request, and answers that are remembered. Immutable once released.
-- Times are epoch milliseconds. A queue that uses neither has no row here.

-- Operations on all jobs that match a filter: what to do, how far it is done, and what came of it (JSON). done_at is NULL
-- while there is something left to do.
CREATE TABLE tasks (
  id TEXT PRIMARY KEY,
  data TEXT NOT NULL,
  done_at INTEGER
) STRICT, WITHOUT ROWID;

-- Answers to enqueues under an idempotency key: hash of the request, and the receipt in parts of at most a megabyte.
CREATE TABLE idempotency (
  key TEXT NOT NULL,
  part INTEGER NOT NULL,
  hash TEXT NOT NULL,
  expires_at INTEGER NOT NULL,
  data TEXT NOT NULL,
  PRIMARY KEY (key, part)
) STRICT, WITHOUT ROWID;
CREATE INDEX idempotency_expiry ON idempotency (expires_at);
