-- From version 4: what operators have changed.

CREATE TABLE audit (
  id INTEGER PRIMARY KEY,
  at INTEGER NOT NULL,
  action TEXT NOT NULL,
  actor TEXT,
  queue TEXT,
  job TEXT,
  data TEXT NOT NULL
) STRICT;
