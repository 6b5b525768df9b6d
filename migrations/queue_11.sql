-- From version 10, where each job that waits for its time had a row of its own. The rows that are there stay.

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
