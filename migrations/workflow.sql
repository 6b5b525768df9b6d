-- The whole schema of one workflow's own SQLite database, version 1. One table, because each table is a cost of its own and
-- a workflow is small. A change gets a higher version in `src/durable/schema.ts`, and a file `workflow_<version>.sql` that
-- brings a database of the version before to it, with a `meta` table that tells the version as in `queue.sql`.

-- kind and id: 'meta' 1, what was asked for; 'jobs' n, bodies of the jobs from node n on; 'log' n, what happened, in its order;
-- 'result' n, the result of the job of node n, where it is too large for the log. data: JSON.
CREATE TABLE parts (
  kind TEXT NOT NULL,
  id INTEGER NOT NULL,
  data TEXT NOT NULL,
  PRIMARY KEY (kind, id)
) STRICT, WITHOUT ROWID;
