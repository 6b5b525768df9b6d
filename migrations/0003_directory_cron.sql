-- The directory's record of cron entries: which queue has the one with a name. Immutable once released.

-- others: JSON array of queues that may still have it, because the last change was cut off.
-- version: number of the last change to this name; rises over all names, for ever.
CREATE TABLE cron_places (
  name TEXT PRIMARY KEY,
  queue TEXT NOT NULL,
  others TEXT NOT NULL,
  version INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE cron_version (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  version INTEGER NOT NULL
) STRICT;
