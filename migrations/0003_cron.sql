-- Cron entries: in the queue that their jobs go to. Immutable once released. Times are epoch milliseconds.

-- version: number of the change, given out by the directory; a change with a lower one comes too late.
-- status: 0 here, 1 on its way to another queue, 2 gone (remembered so that a change under way does not bring it back).
-- data: JSON. Status 0: the definition. Status 1: definition, run and destination.
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
