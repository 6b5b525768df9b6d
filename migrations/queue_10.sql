DROP INDEX jobs_limited;
UPDATE jobs SET due_at = waits_since, waits_since = NULL WHERE waits_since IS NOT NULL;
