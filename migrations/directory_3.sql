-- From version 2: the settings of all queues remember how far they were told in place of a list of names, which a row holds
-- only so many of; and the ids that name no queue are listed, so that no lookup asks every queue.

ALTER TABLE queues ADD COLUMN ids_listed INTEGER NOT NULL DEFAULT 0;

CREATE INDEX queues_unlisted ON queues (route) WHERE ids_listed = 0;

ALTER TABLE queue_defaults ADD COLUMN told_to INTEGER NOT NULL DEFAULT -1;

UPDATE queue_defaults SET told_to = 4294967295 WHERE untold = '[]';

ALTER TABLE queue_defaults DROP COLUMN untold;

CREATE TABLE untold_queues (
  name TEXT PRIMARY KEY
) STRICT, WITHOUT ROWID;

CREATE TABLE ids (
  id TEXT NOT NULL,
  queue TEXT NOT NULL,
  noted_at INTEGER NOT NULL,
  PRIMARY KEY (id, queue)
) STRICT, WITHOUT ROWID;

CREATE TABLE id_shards (
  name TEXT PRIMARY KEY
) STRICT, WITHOUT ROWID;
