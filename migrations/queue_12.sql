-- From version 11, where each job in the line had a row beside that of its lease.

ALTER TABLE leases ADD COLUMN job TEXT;
