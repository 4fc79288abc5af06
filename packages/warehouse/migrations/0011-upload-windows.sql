-- What was uploaded when. A row tells of one table and one interval of upload; the version is the instant at which it
-- was written, by the clock of ClickHouse. Numbers are counted from the tables, never added up.
CREATE TABLE IF NOT EXISTS {{local upload_windows}} {{on cluster}} (
  seconds UInt32 COMMENT 'length of the window',
  window_start DateTime('UTC'),
  table LowCardinality(String),
  version UInt64,
  state Enum8('open' = 1, 'closed' = 2, 'compacted' = 3, 'backfilled' = 4),
  rows UInt64 COMMENT 'readable rows that carry an instant of upload in this window',
  partitions Array(String) COMMENT 'in which they lie',
  pending Array(String) COMMENT 'of these, in which a merge is still due',
  offsets Map(UInt16, UInt64) COMMENT 'highest offset of each partition of the bus',
  reopened UInt32 COMMENT 'how often',
  opened_at DateTime('UTC'),
  closed_at Nullable(DateTime('UTC')),
  compacted_at Nullable(DateTime('UTC')),
  backfilled_at Nullable(DateTime('UTC')),
  result String COMMENT 'JSON: what the last compaction did'
) ENGINE = {{engine ReplacingMergeTree(version)}} ORDER BY (seconds, window_start, table);

{{distributed upload_windows by cityHash64(window_start, table)}};

-- Keys that a compaction works on. A run drops its own, which are partitions of their own.
CREATE TABLE IF NOT EXISTS {{local compaction_keys}} {{on cluster}} (
  run_id String,
  kind LowCardinality(String),
  client_id LowCardinality(String),
  id String,
  key_date DateTime64(6, 'UTC') COMMENT 'in the key of the row',
  record_date DateTime64(6, 'UTC') COMMENT 'date_created of the record that stays',
  target String,
  target_kind UInt8,
  version UInt256,
  added_at DateTime DEFAULT now()
) ENGINE = {{engine MergeTree}}
PARTITION BY run_id
ORDER BY (kind, client_id, id)
TTL added_at + INTERVAL 3 DAY
SETTINGS ttl_only_drop_parts = 1;

{{distributed compaction_keys by cityHash64(client_id, id)}};

-- Keys and hashes of readable records before a merge, to be compared with those behind it. Hashes only.
CREATE TABLE IF NOT EXISTS {{local compaction_checks}} {{on cluster}} (
  run_id String,
  bucket UInt16,
  key UInt128,
  version UInt256,
  hash UInt64 COMMENT 'without the instant of upload',
  uploaded_at DateTime64(6, 'UTC'),
  added_at DateTime DEFAULT now()
) ENGINE = {{engine MergeTree}}
PARTITION BY run_id
ORDER BY (bucket, key)
TTL added_at + INTERVAL 3 DAY
SETTINGS ttl_only_drop_parts = 1;

{{distributed compaction_checks by cityHash64(key)}};

-- Rows of a window are found by their instant of upload.
ALTER TABLE {{local conversations}} {{on cluster}}
  ADD INDEX IF NOT EXISTS by_upload uploaded_at TYPE minmax GRANULARITY 1;
ALTER TABLE {{local conversation_updates}} {{on cluster}}
  ADD INDEX IF NOT EXISTS by_upload uploaded_at TYPE minmax GRANULARITY 1;
ALTER TABLE {{local handoffs}} {{on cluster}}
  ADD INDEX IF NOT EXISTS by_upload uploaded_at TYPE minmax GRANULARITY 1;
ALTER TABLE {{local messages}} {{on cluster}}
  ADD INDEX IF NOT EXISTS by_upload uploaded_at TYPE minmax GRANULARITY 1;
ALTER TABLE {{local end_users}} {{on cluster}}
  ADD INDEX IF NOT EXISTS by_upload uploaded_at TYPE minmax GRANULARITY 1;

ALTER TABLE {{local conversations}} {{on cluster}} MATERIALIZE INDEX IF EXISTS by_upload;
ALTER TABLE {{local conversation_updates}} {{on cluster}} MATERIALIZE INDEX IF EXISTS by_upload;
ALTER TABLE {{local handoffs}} {{on cluster}} MATERIALIZE INDEX IF EXISTS by_upload;
ALTER TABLE {{local messages}} {{on cluster}} MATERIALIZE INDEX IF EXISTS by_upload;
ALTER TABLE {{local end_users}} {{on cluster}} MATERIALIZE INDEX IF EXISTS by_upload;

-- What is older than a year is read seldom and takes less room; merges write it so.
ALTER TABLE {{local conversations}} {{on cluster}}
  MODIFY TTL toDateTime(date_created) + INTERVAL 365 DAY RECOMPRESS CODEC(ZSTD(3))
  SETTINGS materialize_ttl_after_modify = 0;
ALTER TABLE {{local conversation_updates}} {{on cluster}}
  MODIFY TTL toDateTime(date_updated) + INTERVAL 365 DAY RECOMPRESS CODEC(ZSTD(3))
  SETTINGS materialize_ttl_after_modify = 0;
ALTER TABLE {{local handoffs}} {{on cluster}}
  MODIFY TTL toDateTime(conversation_date_created) + INTERVAL 365 DAY RECOMPRESS CODEC(ZSTD(3))
  SETTINGS materialize_ttl_after_modify = 0;
ALTER TABLE {{local messages}} {{on cluster}}
  MODIFY TTL toDateTime(date_created) + INTERVAL 365 DAY RECOMPRESS CODEC(ZSTD(3))
  SETTINGS materialize_ttl_after_modify = 0;
