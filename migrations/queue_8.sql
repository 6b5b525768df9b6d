-- From version 7, where everything that had to arrive at another object had a table or a fact of its own.

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

-- An entry that goes to another queue is gone here, and a letter.
INSERT INTO outbox SELECT 'cron', name, 0, data, 0 FROM crons WHERE status = 1;
UPDATE crons SET status = 2, data = '' WHERE status = 1;

ALTER TABLE idempotency RENAME TO inbox;
DROP INDEX idempotency_expiry;
CREATE INDEX inbox_expiry ON inbox (expires_at);
