-- Keys that a job works on, so that its queries and deletions need not carry them. A run drops its partition at its end.
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
