-- Schema of a lock object: which queues may have a job with a fingerprint. Immutable once released.

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
