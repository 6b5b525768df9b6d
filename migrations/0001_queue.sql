-- Schema of one queue's own SQLite database. Immutable once released: later changes get a file of their own.
-- Times are epoch milliseconds.

-- Facts about the queue itself: name, route, settings, pause, high-water mark of the sequence. Values are JSON.
CREATE TABLE meta (
  key TEXT PRIMARY KEY,
  value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- Jobs that wait or run, and those that ended otherwise than by success.
-- key: the job's sequence number; with bit 41 set when the job did not start in the line of immediate jobs.
--   Immediate jobs of default priority are taken in key order and need no index entry (due_at is NULL).
-- state: 0 waiting or running, 1 pending, 2 cancelled, 3 discarded, 4 discarded and kept as a dead letter, 5 held back
--   until a batch over several queues is decided.
--   Which waiting job is scheduled, available or retryable follows from due_at and the present time; which one runs
--   follows from the leases.
-- claims: attempts ended over the whole life; a lease names the claim it stands for, so a lease entry whose claim is
--   not claims + 1 is over. attempt: the same, but back at 0 after a redrive.
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
  history TEXT
) STRICT;

-- Delayed, retried and prioritised jobs: one seek per priority finds the next one.
CREATE INDEX jobs_due ON jobs (priority, due_at, attempt) WHERE due_at IS NOT NULL;
CREATE INDEX jobs_expiry ON jobs (expires_at) WHERE expires_at IS NOT NULL AND ended_at IS NULL;
CREATE INDEX jobs_ended ON jobs (state, ended_at) WHERE ended_at IS NOT NULL;

-- Pending jobs are rare; this finds and counts them without a scan.
CREATE INDEX jobs_pending ON jobs (state) WHERE state = 1;

-- One row for each claimed batch. A row whose entries are all over is reused by the next claim.
CREATE TABLE leases (
  id INTEGER PRIMARY KEY,
  data TEXT NOT NULL
) STRICT;

-- Completed jobs, many to a row. lo and hi bound the sequence numbers inside and lie less than 1024 apart.
CREATE TABLE archive (
  chunk INTEGER PRIMARY KEY,
  lo INTEGER NOT NULL,
  hi INTEGER NOT NULL,
  jobs INTEGER NOT NULL,
  ended_at INTEGER NOT NULL,
  data TEXT NOT NULL
) STRICT;
CREATE INDEX archive_range ON archive (lo, hi, jobs);

-- Results too large to sit beside their job: a row holds at most 2 MB.
CREATE TABLE results (
  key INTEGER PRIMARY KEY,
  value TEXT NOT NULL
) STRICT;

-- Ids chosen by clients; all others carry their key.
CREATE TABLE aliases (
  id TEXT PRIMARY KEY,
  key INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Batches over several queues that are not finished: as participant the jobs held (state 5) and who decides, as
-- coordinator the decision and who must still be told.
CREATE TABLE batches (
  batch TEXT NOT NULL,
  role TEXT NOT NULL,
  data TEXT NOT NULL,
  check_at INTEGER NOT NULL,
  PRIMARY KEY (batch, role)
) STRICT, WITHOUT ROWID;

-- Who may stand in the way of a unique job: fingerprint and key of every unique job that exists, newest of its kind.
CREATE TABLE unique_keys (
  fingerprint TEXT NOT NULL,
  key INTEGER NOT NULL,
  PRIMARY KEY (fingerprint, key)
) STRICT, WITHOUT ROWID;
