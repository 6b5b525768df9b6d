-- The directory's record of workers that pull. Immutable once released.
-- data: JSON of what the worker said about itself and what it was told. seen_at: epoch milliseconds of a heartbeat,
-- refreshed at most every half minute; memory knows the last one.
CREATE TABLE workers (
  id TEXT PRIMARY KEY,
  seen_at INTEGER NOT NULL,
  data TEXT NOT NULL
) STRICT, WITHOUT ROWID;
