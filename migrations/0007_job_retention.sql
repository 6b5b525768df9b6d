-- Jobs that say themselves how long they are kept. Immutable once released. Times are epoch milliseconds.

-- Completed ones need no column: archive.chunk is negative for a chunk of them, and tells when it is to be removed. From 1
-- on chunks are numbered in the order of completion, as before.

-- keep_until: when an ended job is to be removed, where the job itself says so; NULL where its queue does, and without
--   meaning before the job has ended.
ALTER TABLE jobs ADD COLUMN keep_until INTEGER;

-- Pruning by the queue's retention goes from the oldest and must not meet those again and again that stay longer: the two
-- kinds stand apart, each in the order in which they ended. Still one entry for each ended job.
DROP INDEX jobs_ended;
CREATE INDEX jobs_ended ON jobs (state, (keep_until IS NULL), ended_at) WHERE ended_at IS NOT NULL;
CREATE INDEX jobs_kept ON jobs (keep_until) WHERE keep_until IS NOT NULL AND ended_at IS NOT NULL;
