CREATE TABLE IF NOT EXISTS {{local end_users}} {{on cluster}} (
  client_id LowCardinality(String),
  end_user_id String,
  version UInt128 COMMENT 'exported_at in microseconds << 64 | partition << 48 | offset',
  exported_at DateTime64(6, 'UTC'),
  uploaded_at DateTime64(6, 'UTC'),
  date_created DateTime64(6, 'UTC'),
  date_updated DateTime64(6, 'UTC'),
  email String,
  external_ids Array(String),
  record String COMMENT 'public JSON',
  INDEX by_external_id external_ids TYPE bloom_filter(0.01) GRANULARITY 1,
  INDEX by_upload uploaded_at TYPE minmax GRANULARITY 1,
  {{stamped uploaded_at}}
) ENGINE = {{engine ReplacingMergeTree(version)}}
ORDER BY (client_id, end_user_id)
SETTINGS index_granularity = 2048;

{{distributed end_users by cityHash64(client_id, end_user_id)}};
