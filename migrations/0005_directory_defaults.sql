-- The directory's record of the settings that hold in all queues. Immutable once released.
-- version: rises with each change. config: JSON. untold: JSON array of the queues that have not confirmed this version.
CREATE TABLE queue_defaults (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  version INTEGER NOT NULL,
  config TEXT NOT NULL,
  untold TEXT NOT NULL
) STRICT;
