-- Rate limits of one client: name of the limit to its windows; a name that is missing has the configured ones.
{{alter clients ADD COLUMN IF NOT EXISTS rate_limits Map(String, String)}};

ALTER TABLE {{local end_users}} {{on cluster}}
  ADD INDEX IF NOT EXISTS by_external_id external_ids TYPE bloom_filter(0.01) GRANULARITY 1;

ALTER TABLE {{local end_users}} {{on cluster}} MATERIALIZE INDEX IF EXISTS by_external_id;

-- The messages of a conversation side by side, in the order in which they are paged. Kept by the table itself:
-- what merges or deletes rows does so here too. The last setting keeps the date in the index that is in memory.
ALTER TABLE {{local messages}} {{on cluster}} MODIFY SETTING
  deduplicate_merge_projection_mode = 'rebuild',
  lightweight_mutation_projection_mode = 'rebuild',
  primary_key_ratio_of_unique_prefix_values_to_skip_suffix_columns = 1;

ALTER TABLE {{local messages}} {{on cluster}} ADD PROJECTION IF NOT EXISTS of_conversation (
  SELECT client_id, conversation_id, date_created, message_id, version, uploaded_at, record
  ORDER BY client_id, conversation_id, date_created, message_id
);

ALTER TABLE {{local messages}} {{on cluster}} MATERIALIZE PROJECTION IF EXISTS of_conversation;
