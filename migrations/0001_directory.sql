-- Schema of the directory: which queues exist. Immutable once released.

CREATE TABLE queues (
  route INTEGER PRIMARY KEY,
  name TEXT NOT NULL,
  created_at INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX queues_name ON queues (name);
