-- The directory's record of operations on many jobs that were begun under an idempotency key. Immutable once released.
-- hash: of the request. expires_at: epoch milliseconds. data: JSON of the operation's id, when it began, the queues that
-- there were, and the one that decides where it is all or nothing.
CREATE TABLE operation_keys (
  key TEXT PRIMARY KEY,
  hash TEXT NOT NULL,
  expires_at INTEGER NOT NULL,
  data TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX operation_keys_expiry ON operation_keys (expires_at);
