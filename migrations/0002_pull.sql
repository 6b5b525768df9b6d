-- What workers say about jobs on the way: progress and checkpoints. Immutable once released.
-- Times are epoch milliseconds. A job that reports neither has no row here.

-- The last progress report of a job that has not completed; a completed one keeps it in its archive chunk.
-- claim: the claim that reported. expires_at: the end of its lease as the report moved it; the lease row, not written
--   by a report, may still say an earlier time.
CREATE TABLE progress (
  key INTEGER PRIMARY KEY,
  claim INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,
  data TEXT NOT NULL
) STRICT;

-- The last checkpoint of a job, kept until the job itself is removed.
CREATE TABLE checkpoints (
  key INTEGER PRIMARY KEY,
  sequence INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  data TEXT NOT NULL
) STRICT;
