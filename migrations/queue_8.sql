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

-- Of batches over several queues: shares and decisions are letters, and what was given up is an answer.
INSERT INTO outbox SELECT 'share', batch, 0, data, check_at FROM batches WHERE role = 'participant';
INSERT INTO outbox SELECT 'decision', batch, 0, data ->> '$.untold', 0 FROM batches
  WHERE role = 'coordinator' AND data ->> '$.committed' = 1 AND json_array_length(data, '$.untold') > 0;
INSERT INTO inbox SELECT 'ticket ' || batch, 0, '', check_at, '"aborted"' FROM batches
  WHERE role = 'coordinator' AND data ->> '$.committed' = 0;
DROP TABLE batches;
