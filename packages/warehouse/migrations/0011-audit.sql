-- Before and after each command and erasure. Services cannot change or delete rows.
CREATE TABLE IF NOT EXISTS {{local audit}} {{on cluster}} (
  run_id String COMMENT 'the same before and after',
  state Enum8('begun' = 1, 'done' = 2, 'failed' = 3),
  at DateTime64(6, 'UTC') DEFAULT now64(6),
  actor String,
  source String COMMENT 'user and host of the process',
  command LowCardinality(String),
  arguments String COMMENT 'JSON, without secrets and names of persons',
  result String COMMENT 'empty, or why it failed'
) ENGINE = {{engine MergeTree}}
PARTITION BY toYYYYMM(at)
ORDER BY (at, run_id)
TTL toDateTime(at) + INTERVAL 730 DAY
SETTINGS ttl_only_drop_parts = 1;

{{distributed audit by cityHash64(run_id)}};
