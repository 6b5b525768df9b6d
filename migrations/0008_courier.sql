-- The courier: one outbox for whatever must arrive at other objects, and one inbox for what was answered. Immutable once
-- released. Times are epoch milliseconds.

-- Letters that have not arrived. kind and address: who sends what to whom. number: letters to one address go in this order;
-- 0 where there is only one. due_at: from when the courier sends it.
CREATE TABLE outbox (
  kind TEXT NOT NULL,
  address TEXT NOT NULL,
  number INTEGER NOT NULL,
  data TEXT NOT NULL,
  due_at INTEGER NOT NULL,
  PRIMARY KEY (kind, address, number)
) STRICT, WITHOUT ROWID;

INSERT INTO outbox SELECT 'ending', workflow, id, data, 0 FROM workflow_outbox;
DROP TABLE workflow_outbox;

INSERT INTO outbox SELECT 'move', substr(key, 6), 0, value, 0 FROM meta WHERE key LIKE 'move:%';
DELETE FROM meta WHERE key LIKE 'move:%';

-- crons.status: 0 here, 2 gone. An entry that goes to another queue is gone here, and a letter.
INSERT INTO outbox SELECT 'cron', name, 0, data, 0 FROM crons WHERE status = 1;
UPDATE crons SET status = 2, data = '' WHERE status = 1;
