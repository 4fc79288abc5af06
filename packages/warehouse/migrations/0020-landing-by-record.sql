-- Events in the order of a hash of their record, so that a backfill reads the events of a share of the records by
-- themselves. An event has one record, so equal events still meet.
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
  expires_on Date
) ENGINE = {{engine ReplacingMergeTree(uploaded_at)}}
PARTITION BY toYYYYMMDD(uploaded_at)
ORDER BY (cityHash64(client_id, record_id), topic, partition, offset)
TTL expires_on
SETTINGS
  ttl_only_drop_parts = 1,
  index_granularity = 512,
  min_bytes_for_wide_part = 268435456,
  max_bytes_to_merge_at_max_space_in_pool = 1073741824;

{{distributed landing by cityHash64(client_id, record_id)}};

ALTER TABLE {{local landing}} {{on cluster}} ADD CONSTRAINT IF NOT EXISTS begins_in_time CHECK NOT throwIf(
  startsWith(getSetting('log_comment'), 'not after ')
    AND toUnixTimestamp64Milli(now64(3)) > toInt64OrZero(substring(getSetting('log_comment'), 11)),
  'the INSERT begins later than its writer may write');

-- The rows of the records that a backfill looks at, as they were when it began. Hashes instead of ids.
CREATE TABLE IF NOT EXISTS {{local backfill_rows}} {{on cluster}} (
  run_id String,
  record UInt64 COMMENT 'hash of client and id',
  kind LowCardinality(String) COMMENT 'the table of a row; or landed, wrong and the type of a record; or begun',
  key_date Int64 COMMENT 'in the key of the row, µs',
  target String,
  target_kind UInt8,
  version UInt256,
  uploaded_at DateTime64(6, 'UTC'),
  block UInt64 COMMENT 'with the place in it: the order of insertion',
  place UInt64,
  digest String,
  added_at DateTime DEFAULT now()
) ENGINE = {{engine MergeTree}}
PARTITION BY run_id
ORDER BY record
TTL added_at + INTERVAL 3 DAY
SETTINGS ttl_only_drop_parts = 1, index_granularity = 1024;

{{distributed backfill_rows by record}};
