-- The directory's list of workflows: one row each, written at the start and at the end. Immutable once released.
-- data: JSON of a summary. Ids are UUIDv7, so they sort by time.
CREATE TABLE workflows (
  id TEXT PRIMARY KEY,
  state TEXT NOT NULL,
  data TEXT NOT NULL
) STRICT, WITHOUT ROWID;
