-- The whole schema of a lock object, version 1. A change gets a higher version in `src/durable/schema.ts`, and a file
-- `locks_<version>.sql` that brings a database of the version before to it, with a `meta` table that tells the version as in
-- `queue.sql`.

-- Which queues may have a job with a fingerprint.
-- tickets: JSON array of {ticket, coordinator}, the enqueues that named this queue, the latest last. Earlier ones are kept
-- while it is unknown whether they are still on their way.
CREATE TABLE holders (
  fingerprint TEXT NOT NULL,
  queue TEXT NOT NULL,
  tickets TEXT NOT NULL,
  PRIMARY KEY (fingerprint, queue)
) STRICT, WITHOUT ROWID;

-- Only in the object that keeps the register: names of the lock objects in use.
CREATE TABLE shards (
  name TEXT PRIMARY KEY
) STRICT, WITHOUT ROWID;
