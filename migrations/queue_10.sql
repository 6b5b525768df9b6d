-- From version 9, where each immediate job had a row of its own, and the index of the archive changed with each job that
-- joined a chunk. The rows that are there stay: they are jobs that have moved out of their blocks.

CREATE TABLE blocks (
  first INTEGER PRIMARY KEY,
  span INTEGER NOT NULL,
  jobs INTEGER NOT NULL,
  gone TEXT,
  heads TEXT NOT NULL,
  data TEXT NOT NULL
) STRICT;

DROP INDEX archive_range;
CREATE INDEX archive_lo ON archive (lo);
