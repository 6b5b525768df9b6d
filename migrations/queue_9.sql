-- From version 8, which counted nothing of what had happened: counting begins with the next job.

ALTER TABLE jobs ADD COLUMN meters TEXT;
ALTER TABLE archive ADD COLUMN meters TEXT;

CREATE TABLE meters (
  id INTEGER PRIMARY KEY,
  version INTEGER NOT NULL,
  sequence INTEGER,
  data TEXT NOT NULL
) STRICT;
INSERT INTO meters VALUES (1, 0, NULL, json_object('since', unixepoch() * 1000));
