-- A partition in which nothing was written for a day becomes one part, unless that would be larger than what
-- ClickHouse merges anyway (max_bytes_to_merge_at_max_space_in_pool, 150 GB).
ALTER TABLE {{local conversations}} {{on cluster}} MODIFY SETTING
  min_age_to_force_merge_seconds = 86400, min_age_to_force_merge_on_partition_only = 1,
  enable_max_bytes_limit_for_min_age_to_force_merge = 1;
-- Compaction deletes entries every hour, and each deletion makes all parts of the table young again.
ALTER TABLE {{local conversation_updates}} {{on cluster}} MODIFY SETTING
  min_age_to_force_merge_seconds = 2400, min_age_to_force_merge_on_partition_only = 1,
  enable_max_bytes_limit_for_min_age_to_force_merge = 1;
ALTER TABLE {{local handoffs}} {{on cluster}} MODIFY SETTING
  min_age_to_force_merge_seconds = 86400, min_age_to_force_merge_on_partition_only = 1,
  enable_max_bytes_limit_for_min_age_to_force_merge = 1;
ALTER TABLE {{local messages}} {{on cluster}} MODIFY SETTING
  min_age_to_force_merge_seconds = 86400, min_age_to_force_merge_on_partition_only = 1,
  enable_max_bytes_limit_for_min_age_to_force_merge = 1;

-- The ledger of upload windows would grow for ever.
ALTER TABLE {{local upload_windows}} {{on cluster}} MODIFY TTL window_start + INTERVAL 400 DAY;
