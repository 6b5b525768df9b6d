-- README.md explains the tables.

CREATE TABLE holders (
  fingerprint TEXT NOT NULL,
  queue TEXT NOT NULL,
  tickets TEXT NOT NULL,
  PRIMARY KEY (fingerprint, queue)
) STRICT, WITHOUT ROWID;

CREATE TABLE shards (
  name TEXT PRIMARY KEY
) STRICT, WITHOUT ROWID;
