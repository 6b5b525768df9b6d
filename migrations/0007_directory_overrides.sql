-- The directory's record of what operators put in the place of the limits of keys, in all queues. Immutable once released.
-- limit_overrides: JSON, by key. It belongs to the version beside it, and is spread with the settings.
ALTER TABLE queue_defaults ADD COLUMN limit_overrides TEXT NOT NULL DEFAULT '{}';
