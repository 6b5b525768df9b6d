-- A queue's side of workflows. Immutable once released. Jobs that belong to no workflow have no row here.

-- Which jobs of a workflow this queue has taken, so that it takes none twice: one row for each message that brought some, by
-- its first step. data: JSON object of step → job id, null where the job was refused. Kept until the workflow knows.
CREATE TABLE workflow_starts (
  workflow TEXT NOT NULL,
  first INTEGER NOT NULL,
  data TEXT NOT NULL,
  PRIMARY KEY (workflow, first)
) STRICT, WITHOUT ROWID;

-- Ends of jobs that their workflow has not confirmed to know, many to a row. data: JSON array.
CREATE TABLE workflow_outbox (
  workflow TEXT NOT NULL,
  id INTEGER NOT NULL,
  data TEXT NOT NULL,
  PRIMARY KEY (workflow, id)
) STRICT, WITHOUT ROWID;
