-- Written before the record's rows. stored_at is the stamp plus the place in the batch in µs, so that few share it.
CREATE TABLE IF NOT EXISTS {{local changes}} {{on cluster}} (
  client_id LowCardinality(String),
  kind Enum8('conversation' = 1, 'message' = 2, 'end_user' = 3),
  stored_at DateTime64(6, 'UTC') CODEC(Delta(8), ZSTD(1)),
  id String CODEC(ZSTD(1)),
  date_created DateTime64(6, 'UTC') COMMENT 'in the key of the record; the first of 1970 for end users' CODEC(ZSTD(1)),
  deleted Bool COMMENT 'rows of the record were deleted before this instant',
  {{stamped stored_at}}
) ENGINE = {{engine ReplacingMergeTree}}
PARTITION BY toYYYYMM(stored_at)
ORDER BY (client_id, kind, stored_at, id, date_created, deleted)
TTL toDateTime(stored_at) + INTERVAL 32 DAY DELETE WHERE deleted
SETTINGS index_granularity = 1024;

{{distributed changes by cityHash64(client_id, id)}};
