-- Ordered by a hash of the record, so that a backfill reads shares of records. A topic created anew has other events at
-- the same places, and at other times. Compact parts are cheaper to write,
-- small ones sooner rewritten by erasures.
CREATE TABLE IF NOT EXISTS {{local landing}} {{on cluster}} (
  topic LowCardinality(String) COMMENT 'of the bus, or file: and the name of a file',
  partition UInt16,
  offset UInt64 COMMENT 'on the bus, or the number of the line',
  type LowCardinality(String) COMMENT 'conversation.exported, message.exported or end_user.exported',
  client_id LowCardinality(String),
  record_id String,
  conversation_id String COMMENT 'its own id, of a message that of its conversation, empty for an end user',
  date_created DateTime64(6, 'UTC'),
  subjects Array(String) COMMENT 'whom it is about, as chatter_id:…, end_user_id:… and email:… in lower case',
  key String,
  headers Array(Tuple(name String, value String)),
  payload String CODEC(ZSTD(1)),
  bus_time DateTime64(3, 'UTC'),
  uploaded_at DateTime64(6, 'UTC'),
  expires_on Date,
  {{stamped uploaded_at}}
) ENGINE = {{engine ReplacingMergeTree(uploaded_at)}}
PARTITION BY toYYYYMMDD(uploaded_at)
ORDER BY (cityHash64(client_id, record_id), topic, partition, offset, bus_time)
TTL expires_on
SETTINGS
  ttl_only_drop_parts = 1,
  index_granularity = 512,
  min_bytes_for_wide_part = 268435456,
  max_bytes_to_merge_at_max_space_in_pool = 1073741824;

{{distributed landing by cityHash64(client_id, record_id)}};

-- Until when a process may have written rows without landing.
CREATE TABLE IF NOT EXISTS {{local landing_gaps}} {{on cluster}} (
  writer String,
  version UInt64 COMMENT 'the instant in microseconds',
  until DateTime64(6, 'UTC')
) ENGINE = {{engine ReplacingMergeTree(version)}} ORDER BY writer;

{{distributed landing_gaps by cityHash64(writer)}};
