-- conversation_id is not in the key: a corrected one is a newer version. The ratio keeps the date in the index in
-- memory.
CREATE TABLE IF NOT EXISTS {{local messages}} {{on cluster}} (
  client_id LowCardinality(String),
  date_created DateTime64(6, 'UTC'),
  message_id String,
  version UInt128 COMMENT 'exported_at in microseconds << 64 | partition << 48 | offset',
  exported_at DateTime64(6, 'UTC'),
  uploaded_at DateTime64(6, 'UTC'),
  conversation_id String,
  chatter_id String,
  sender String,
  recipient String,
  message_type LowCardinality(String),
  answer_id String,
  in_response_to String,
  link_was_clicked Nullable(Bool),
  review Nullable(UInt8),
  record String COMMENT 'public JSON',
  INDEX by_conversation conversation_id TYPE bloom_filter(0.01) GRANULARITY 1,
  INDEX by_upload uploaded_at TYPE minmax GRANULARITY 1,
  {{stamped uploaded_at}},
  PROJECTION of_conversation (
    SELECT client_id, conversation_id, date_created, message_id, version, uploaded_at, record
    ORDER BY client_id, conversation_id, date_created, message_id
  )
) ENGINE = {{engine ReplacingMergeTree(version)}}
PARTITION BY toYYYYMM(date_created)
ORDER BY (client_id, date_created, message_id)
TTL toDateTime(date_created) + INTERVAL 365 DAY RECOMPRESS CODEC(ZSTD(3))
SETTINGS
  index_granularity = 2048,
  deduplicate_merge_projection_mode = 'rebuild',
  lightweight_mutation_projection_mode = 'rebuild',
  primary_key_ratio_of_unique_prefix_values_to_skip_suffix_columns = 1,
  min_age_to_force_merge_seconds = 86400,
  min_age_to_force_merge_on_partition_only = 1,
  enable_max_bytes_limit_for_min_age_to_force_merge = 1;

{{distributed messages by cityHash64(client_id, message_id)}};
