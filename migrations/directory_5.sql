-- From version 4: the schemas that the arguments of jobs must fit.

CREATE TABLE schemas (
  type TEXT NOT NULL,
  version TEXT NOT NULL,
  uri TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  data TEXT NOT NULL,
  PRIMARY KEY (type, version)
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX schemas_uri ON schemas (uri);
