-- From version 4: what operators have changed, and the schemas that the arguments of jobs must fit.

CREATE TABLE audit (
  id INTEGER PRIMARY KEY,
  at INTEGER NOT NULL,
  action TEXT NOT NULL,
  actor TEXT,
  queue TEXT,
  job TEXT,
  data TEXT NOT NULL
) STRICT;

CREATE TABLE schemas (
  type TEXT NOT NULL,
  version TEXT NOT NULL,
  uri TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  data TEXT NOT NULL,
  PRIMARY KEY (type, version)
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX schemas_uri ON schemas (uri);
