-- Schema of one workflow's own SQLite database. Immutable once released. One table, because each table is a cost of its own
-- and a workflow is small.
-- kind and id: 'meta' 1, what was asked for; 'jobs' n, bodies of the jobs from node n on; 'log' n, what happened, in its order;
-- 'result' n, the result of the job of node n, where it is too large for the log. data: JSON.
CREATE TABLE parts (
  kind TEXT NOT NULL,
  id INTEGER NOT NULL,
  data TEXT NOT NULL,
  PRIMARY KEY (kind, id)
) STRICT, WITHOUT ROWID;
