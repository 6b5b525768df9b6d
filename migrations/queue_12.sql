CREATE TABLE stream_chunks (
  key INTEGER NOT NULL,
  name TEXT NOT NULL,
  run INTEGER NOT NULL,
  n INTEGER NOT NULL,
  writer TEXT,
  data TEXT NOT NULL,
  PRIMARY KEY (key, name, run, n)
) STRICT, WITHOUT ROWID;
