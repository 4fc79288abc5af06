-- A run drops its partition at its end.
CREATE TABLE IF NOT EXISTS {{local job_keys}} {{on cluster}} (
  run_id String,
  kind LowCardinality(String),
  client_id LowCardinality(String),
  id String,
  date_created DateTime64(6, 'UTC'),
  target String,
  target_kind UInt8,
  version UInt256,
  added_at DateTime DEFAULT now()
) ENGINE = {{engine MergeTree}}
PARTITION BY run_id
ORDER BY (run_id, kind, client_id, id)
TTL added_at + INTERVAL 3 DAY
SETTINGS ttl_only_drop_parts = 1;

{{distributed job_keys by cityHash64(client_id, id)}};

-- Versions by ClickHouse's clock. Numbers are counted from the tables, never added up.
CREATE TABLE IF NOT EXISTS {{local upload_windows}} {{on cluster}} (
  seconds UInt32 COMMENT 'length of the window',
  window_start DateTime('UTC'),
  table LowCardinality(String),
  version UInt64,
  state Enum8('open' = 1, 'closed' = 2, 'compacted' = 3, 'backfilled' = 4),
  rows UInt64 COMMENT 'readable rows that carry an instant of upload in this window',
  partitions Array(String) COMMENT 'in which they lie',
  offsets Map(UInt16, UInt64) COMMENT 'highest offset of each partition of the bus',
  reopened UInt32 COMMENT 'how often',
  opened_at DateTime('UTC'),
  closed_at Nullable(DateTime('UTC')),
  compacted_at Nullable(DateTime('UTC')),
  backfilled_at Nullable(DateTime('UTC')),
  result String COMMENT 'JSON: what the last compaction did'
) ENGINE = {{engine ReplacingMergeTree(version)}} ORDER BY (seconds, window_start, table)
TTL window_start + INTERVAL 400 DAY;

{{distributed upload_windows by cityHash64(window_start, table)}};

-- As they were when the backfill began, without ids.
CREATE TABLE IF NOT EXISTS {{local backfill_rows}} {{on cluster}} (
  run_id String,
  record UInt64 COMMENT 'hash of client and id',
  kind LowCardinality(String) COMMENT 'the table of a row; or published and the table; or landed, wrong and the type of a record; or begun',
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

-- Identified by first arrival and earlier replays, so one that was written twice is one.
CREATE TABLE IF NOT EXISTS {{local replayed_dead_letters}} {{on cluster}} (
  topic LowCardinality(String) COMMENT 'that the record came from',
  partition UInt16 COMMENT 'of the first arrival',
  offset UInt64 COMMENT 'of the first arrival',
  arrived_at DateTime64(3, 'UTC') COMMENT 'bus time of the first arrival; 1970 when it is unknown',
  replays UInt16 COMMENT 'before this one',
  version UInt64 COMMENT 'milliseconds',
  run_id String,
  dead_letter_partition UInt16 COMMENT 'of the dead letter in its topic',
  dead_letter_offset UInt64,
  dead_letter_topic_id LowCardinality(String) COMMENT 'of the topic of dead letters; empty when the brokers gave none',
  replayed_at DateTime64(3, 'UTC')
) ENGINE = {{engine ReplacingMergeTree(version)}}
ORDER BY (topic, partition, offset, arrived_at, replays)
TTL toDateTime(replayed_at) + INTERVAL 400 DAY;

{{distributed replayed_dead_letters by cityHash64(topic, partition, offset)}};

CREATE TABLE IF NOT EXISTS {{local reconciled}} {{on cluster}} (
  topic LowCardinality(String),
  partition UInt16,
  version UInt64 COMMENT 'milliseconds',
  next_offset UInt64,
  until DateTime64(3, 'UTC') COMMENT 'end of the hour that was compared last',
  topic_id String COMMENT 'of the topic in which the offset counts; empty: the brokers gave none'
) ENGINE = {{engine ReplacingMergeTree(version)}} ORDER BY (topic, partition);

{{distributed reconciled by cityHash64(topic)}};
