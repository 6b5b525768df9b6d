-- Limits: jobs that count under a key, and what is known of each key. Immutable once released.
-- Times are epoch milliseconds.

-- limit_key: the key that a limited job counts under; NULL for all others, which have no entry in the index below.
-- waits_since: set while the job waits for its key to have room, and then the moment at which it became available. Such a
--   job has no due_at, so no claim reads it, until its key admits it to the due index.
ALTER TABLE jobs ADD COLUMN limit_key TEXT;
ALTER TABLE jobs ADD COLUMN waits_since INTEGER;
CREATE INDEX jobs_limited ON jobs (limit_key, priority DESC, waits_since, attempt) WHERE waits_since IS NOT NULL;

-- What a key allows, what an operator put in its place, and its starts of the last period (JSON). The key '' is the
-- queue's own limit. check_at: when the key must be looked at: a window opens, an override ends, or it is forgotten.
CREATE TABLE limit_keys (
  key TEXT PRIMARY KEY,
  check_at INTEGER,
  data TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX limit_keys_check ON limit_keys (check_at) WHERE check_at IS NOT NULL;
