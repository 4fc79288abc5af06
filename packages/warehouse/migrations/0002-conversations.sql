-- Of equal versions the later insert wins, so an export written again replaces its rendering. A partition without
-- writes for a day becomes one part, up to 150 GB (max_bytes_to_merge_at_max_space_in_pool). Granules are small: pages
-- by update read records that lie apart.
CREATE TABLE IF NOT EXISTS {{local conversations}} {{on cluster}} (
  client_id LowCardinality(String),
  date_created DateTime64(6, 'UTC'),
  conversation_id String,
  version UInt128 COMMENT 'exported_at in microseconds << 64 | partition << 48 | offset',
  exported_at DateTime64(6, 'UTC'),
  uploaded_at DateTime64(6, 'UTC'),
  date_updated DateTime64(6, 'UTC'),
  chatter_id String,
  end_user_id String,
  language LowCardinality(String),
  platform LowCardinality(String),
  device LowCardinality(String),
  browser LowCardinality(String),
  automated_resolution_classification LowCardinality(String),
  generated_topic_label String,
  last_agent_id String,
  is_engaged Nullable(Bool),
  is_escalated Nullable(Bool),
  is_test_user Nullable(Bool),
  agent_handle_time Nullable(Float64),
  bot_handle_time Nullable(Float64),
  csat_score Nullable(Float64),
  head String COMMENT 'public JSON up to and with "handoffs":',
  tail String COMMENT 'public JSON behind the handoffs array',
  INDEX by_upload uploaded_at TYPE minmax GRANULARITY 1,
  {{stamped uploaded_at}}
) ENGINE = {{engine ReplacingMergeTree(version)}}
PARTITION BY toYYYYMM(date_created)
ORDER BY (client_id, date_created, conversation_id)
TTL toDateTime(date_created) + INTERVAL 365 DAY RECOMPRESS CODEC(ZSTD(3))
SETTINGS
  index_granularity = 256,
  min_age_to_force_merge_seconds = 86400,
  min_age_to_force_merge_on_partition_only = 1,
  enable_max_bytes_limit_for_min_age_to_force_merge = 1;

{{distributed conversations by cityHash64(client_id, conversation_id)}};

-- The version is in the key: a newer export must not hide the live row's entry. Compaction deletes hourly, which makes
-- all parts young again.
CREATE TABLE IF NOT EXISTS {{local conversation_updates}} {{on cluster}} (
  client_id LowCardinality(String),
  date_updated DateTime64(6, 'UTC'),
  conversation_id String,
  version UInt128,
  date_created DateTime64(6, 'UTC'),
  uploaded_at DateTime64(6, 'UTC'),
  INDEX by_upload uploaded_at TYPE minmax GRANULARITY 1,
  {{stamped uploaded_at}}
) ENGINE = {{engine ReplacingMergeTree}}
PARTITION BY toYYYYMM(date_updated)
ORDER BY (client_id, date_updated, conversation_id, version)
SETTINGS
  index_granularity = 1024,
  min_age_to_force_merge_seconds = 2400,
  min_age_to_force_merge_on_partition_only = 1,
  enable_max_bytes_limit_for_min_age_to_force_merge = 1;

{{distributed conversation_updates by cityHash64(client_id, conversation_id)}};

-- The later date wins, then the later export (specification 2.1).
CREATE TABLE IF NOT EXISTS {{local handoffs}} {{on cluster}} (
  client_id LowCardinality(String),
  conversation_date_created DateTime64(6, 'UTC'),
  conversation_id String,
  target String,
  target_kind Enum8('handoff_id' = 1, 'id' = 2),
  version UInt256 COMMENT 'date_created << 128 | exported_at << 64 | partition << 48 | offset',
  uploaded_at DateTime64(6, 'UTC'),
  date_created DateTime64(6, 'UTC'),
  name String,
  outcome_status LowCardinality(String),
  reason_code LowCardinality(Nullable(String)),
  entry String COMMENT 'public JSON of the entry',
  INDEX by_upload uploaded_at TYPE minmax GRANULARITY 1,
  {{stamped uploaded_at}}
) ENGINE = {{engine ReplacingMergeTree(version)}}
PARTITION BY toYYYYMM(conversation_date_created)
ORDER BY (client_id, conversation_date_created, conversation_id, target, target_kind)
TTL toDateTime(conversation_date_created) + INTERVAL 365 DAY RECOMPRESS CODEC(ZSTD(3))
SETTINGS
  index_granularity = 1024,
  min_age_to_force_merge_seconds = 86400,
  min_age_to_force_merge_on_partition_only = 1,
  enable_max_bytes_limit_for_min_age_to_force_merge = 1;

{{distributed handoffs by cityHash64(client_id, conversation_id)}};
