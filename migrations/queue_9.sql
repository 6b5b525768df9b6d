ALTER TABLE jobs ADD COLUMN meters TEXT;
ALTER TABLE archive ADD COLUMN meters TEXT;

CREATE TABLE meters (
  id INTEGER PRIMARY KEY,
  version INTEGER NOT NULL,
  sequence INTEGER,
  data TEXT NOT NULL
) STRICT;
INSERT INTO meters VALUES (1, 0, NULL, json_object('since', unixepoch() * 1000));

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

CREATE TABLE retry_blocks (
  block INTEGER PRIMARY KEY,
  sequence INTEGER NOT NULL,
  gone TEXT,
  heads TEXT NOT NULL,
  data TEXT NOT NULL
) STRICT;

ALTER TABLE leases ADD COLUMN job TEXT;

ALTER TABLE jobs ADD COLUMN holds_group TEXT;
CREATE INDEX jobs_holders ON jobs (holds_group) WHERE holds_group IS NOT NULL;

CREATE TABLE group_starts (
  id INTEGER PRIMARY KEY,
  at INTEGER NOT NULL,
  data TEXT NOT NULL
) STRICT;
