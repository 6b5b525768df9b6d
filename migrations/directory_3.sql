-- From version 2, where the settings of all queues listed the queues that had not heard of them: each is a letter now.

CREATE TABLE outbox (
  kind TEXT NOT NULL,
  address TEXT NOT NULL,
  number INTEGER NOT NULL,
  data TEXT NOT NULL,
  due_at INTEGER NOT NULL,
  PRIMARY KEY (kind, address, number)
) STRICT, WITHOUT ROWID;

INSERT INTO outbox SELECT 'settings', value, 0, version, 0 FROM queue_defaults, json_each(untold);
ALTER TABLE queue_defaults DROP COLUMN untold;
