-- The whole schema of one queue's own SQLite database, version 9. A change gets a higher version in `src/durable/schema.ts`,
-- and a file `queue_<version>.sql` that brings a database of the version before to it.
-- Times are epoch milliseconds.

-- Facts about the queue itself: schema (the version), name, route, settings, pause, high-water mark of the sequence. Values
-- are JSON.
CREATE TABLE meta (
  key TEXT PRIMARY KEY,
  value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- Jobs that wait or run, and those that ended otherwise than by success; most of those that stand in the line, or wait together for one moment, are in blocks.
-- key: the job's sequence number; with bit 41 set when the job did not start in the line of immediate jobs.
--   Immediate jobs of default priority are taken in key order and need no index entry (due_at is NULL).
-- state: 0 waiting or running, 1 pending, 2 cancelled, 3 discarded, 4 discarded and kept as a dead letter, 5 held back
--   until a batch over several queues is decided.
--   Which waiting job is scheduled, available or retryable follows from due_at and the present time; which one runs
--   follows from the leases.
-- claims: attempts ended over the whole life; a lease names the claim it stands for, so a lease entry whose claim is
--   not claims + 1 is over. attempt: the same, but back at 0 after a redrive.
-- limit_key: the key that a limited job counts under; NULL for all others, which have no entry in jobs_limited.
-- waits_since: set while the job waits for its key to have room, and then the moment at which it became available. Such a
--   job has no due_at, so no claim reads it, until its key admits it to the due index.
-- keep_until: when an ended job must be removed, where the job itself says so; NULL where its queue does, and without
--   meaning before the job has ended.
-- holds_group: where groups are served in strict order, the group of a job that has begun and has not ended: no other one of its
--   group may start. Else NULL.
-- meters: what the queue had counted when an attempt of the job, or the job itself, ended; see the table of that name.
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

-- Delayed, retried and prioritised jobs: one seek per priority finds the next one.
CREATE INDEX jobs_due ON jobs (priority, due_at, attempt) WHERE due_at IS NOT NULL;
CREATE INDEX jobs_expiry ON jobs (expires_at) WHERE expires_at IS NOT NULL AND ended_at IS NULL;

-- Pending jobs are rare; this finds and counts them without a scan.
CREATE INDEX jobs_pending ON jobs (state) WHERE state = 1;
CREATE INDEX jobs_holders ON jobs (holds_group) WHERE holds_group IS NOT NULL;
CREATE INDEX jobs_limited ON jobs (limit_key, priority DESC, waits_since, attempt) WHERE waits_since IS NOT NULL;

-- Pruning by the queue's retention goes from the oldest and must not meet those again and again that stay longer: the two
-- kinds stand apart, each in the order in which they ended. One entry for each ended job.
CREATE INDEX jobs_ended ON jobs (state, (keep_until IS NULL), ended_at) WHERE ended_at IS NOT NULL;
CREATE INDEX jobs_kept ON jobs (keep_until) WHERE keep_until IS NOT NULL AND ended_at IS NOT NULL;

-- Jobs that stand in the line, many to a row. Nothing is written here when they run or end: a job is in its block until it
-- has a row of its own, lies in the archive, or stands in gone.
-- first: the first sequence number; span: how many numbers. jobs: how many jobs, without those in gone.
-- gone: JSON array of the offsets of jobs of which nothing else is left. heads, data: see src/queue/store/block.ts; data comes
--   last, so that the others are read without it.
CREATE TABLE blocks (
  first INTEGER PRIMARY KEY,
  span INTEGER NOT NULL,
  jobs INTEGER NOT NULL,
  gone TEXT,
  heads TEXT NOT NULL,
  data TEXT NOT NULL
) STRICT;

-- The same for jobs that wait together: of one priority and of one transaction, available at one moment. first is a key, with
--   bit 41 set.
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

-- Jobs that wait for another attempt: those of one transaction, whatever the moments are at which they become available.
-- block: in the order of writing. sequence: the number of the next job when it was written. gone: as in blocks, places of jobs.
--   heads, data: see src/queue/store/retry-text.ts.
CREATE TABLE retry_blocks (
  block INTEGER PRIMARY KEY,
  sequence INTEGER NOT NULL,
  gone TEXT,
  heads TEXT NOT NULL,
  data TEXT NOT NULL
) STRICT;

-- One row for each claimed batch. A row whose entries are all over is reused by the next claim.
-- job: a job that came alone and lives here until its attempt ends: JSON of what is known of it, a line feed, and its body.
CREATE TABLE leases (
  id INTEGER PRIMARY KEY,
  data TEXT NOT NULL,
  job TEXT
) STRICT;

-- Completed jobs, many to a row. lo and hi bound the sequence numbers inside and lie less than 1024 apart.
-- chunk: from 1 on in the order of completion; negative for jobs that say themselves how long they are kept, and then it
--   tells when the chunk must be removed.
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

-- Fingerprint and key of every unique job that exists, newest of its kind: a new job with the fingerprint conflicts with it.
CREATE TABLE unique_keys (
  fingerprint TEXT NOT NULL,
  key INTEGER NOT NULL,
  PRIMARY KEY (fingerprint, key)
) STRICT, WITHOUT ROWID;

-- The last progress report of a job that has not completed; a completed one keeps it in its archive chunk.
-- claim: the claim that reported. expires_at: the end of its lease as the report moved it; the lease row, not written
--   by a report, may still say an earlier time.
CREATE TABLE progress (
  key INTEGER PRIMARY KEY,
  claim INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,
  data TEXT NOT NULL
) STRICT;

-- The last checkpoint of a job, kept until the job itself is removed. The member `steps` of its JSON is what is on record of
-- durable steps; a row with steps and without a checkpoint has the sequence 0.
CREATE TABLE checkpoints (
  key INTEGER PRIMARY KEY,
  sequence INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  data TEXT NOT NULL
) STRICT;

-- What a key allows, what an operator put in its place, and its starts of the last period (JSON). The key '' is the
-- queue's own limit. check_at: when the key must be looked at: a window opens, an override ends, or it is forgotten.
CREATE TABLE limit_keys (
  key TEXT PRIMARY KEY,
  check_at INTEGER,
  data TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX limit_keys_check ON limit_keys (check_at) WHERE check_at IS NOT NULL;

-- Cron entries: in the queue that their jobs go to.
-- version: number of the change, given out by the directory; a change with a lower one comes too late.
-- status: 0 here, 2 gone (remembered so that a change under way does not bring it back). data: JSON of the definition.
-- at: when the row was written; gone rows are forgotten some time after.
CREATE TABLE crons (
  name TEXT PRIMARY KEY,
  version INTEGER NOT NULL,
  status INTEGER NOT NULL,
  at INTEGER NOT NULL,
  data TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- What changes with each fire, apart from the definition because it is written much more often.
-- next_at: the first fire that has not been seen to; NULL when there is none. open: fires that wait for the end of a job,
-- or for other queues. data: JSON of counters, last job and history.
CREATE TABLE cron_runs (
  name TEXT PRIMARY KEY,
  next_at INTEGER,
  open INTEGER NOT NULL,
  data TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- Operations on all jobs that match a filter: what to do, how far it is done, and what came of it (JSON). done_at is NULL
-- while there is something left to do.
CREATE TABLE tasks (
  id TEXT PRIMARY KEY,
  data TEXT NOT NULL,
  done_at INTEGER
) STRICT, WITHOUT ROWID;

-- The inbox: answers to what may be sent again, under the key of the request. hash: of what was asked for. data: the answer
-- in parts of half a million characters.
CREATE TABLE inbox (
  key TEXT NOT NULL,
  part INTEGER NOT NULL,
  hash TEXT NOT NULL,
  expires_at INTEGER NOT NULL,
  data TEXT NOT NULL,
  PRIMARY KEY (key, part)
) STRICT, WITHOUT ROWID;
CREATE INDEX inbox_expiry ON inbox (expires_at);

-- Which jobs of a workflow this queue has taken, so that it takes none twice: one row for each message that brought some, by
-- its first step. data: JSON object of step → job id, null where the job was refused. Kept until the workflow knows.
CREATE TABLE workflow_starts (
  workflow TEXT NOT NULL,
  first INTEGER NOT NULL,
  data TEXT NOT NULL,
  PRIMARY KEY (workflow, first)
) STRICT, WITHOUT ROWID;

-- The outbox: what has not arrived yet at another object. kind and address: what it is, and for whom or about what. number:
-- letters to one address go in this order; 0 where there is only one. due_at: from when the courier sends it.
CREATE TABLE outbox (
  kind TEXT NOT NULL,
  address TEXT NOT NULL,
  number INTEGER NOT NULL,
  data TEXT NOT NULL,
  due_at INTEGER NOT NULL,
  PRIMARY KEY (kind, address, number)
) STRICT, WITHOUT ROWID;

-- What has happened to the jobs, counted by type and minute. Row 1: all that was put away, and since when that is so (version).
-- What was counted since then is a short text, which rides in rows that are written anyway: of a lease, of a chunk of the
-- archive, of a job that ends. Row 0 has it where a transaction wrote none of these. The text with the highest version counts,
-- if that is higher than the one of row 1.
-- sequence: jobs from this number on came later, and are counted by looking at them; NULL: those from the next one on.
CREATE TABLE meters (
  id INTEGER PRIMARY KEY,
  version INTEGER NOT NULL,
  sequence INTEGER,
  data TEXT NOT NULL
) STRICT;
