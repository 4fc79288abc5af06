-- Clients and their API keys. Small tables, read with FINAL; the version is the instant of the change.
CREATE TABLE IF NOT EXISTS {{local clients}} {{on cluster}} (
  client_id String,
  version UInt64,
  link_bounds LowCardinality(String),
  deleted Bool,
  created_at DateTime64(3, 'UTC')
) ENGINE = {{engine ReplacingMergeTree(version)}} ORDER BY client_id;

{{distributed clients by cityHash64(client_id)}};

CREATE TABLE IF NOT EXISTS {{local api_keys}} {{on cluster}} (
  key_hash String COMMENT 'SHA-256 of the key, lower-case hex',
  version UInt64,
  key_id String,
  client_id String,
  label String,
  scopes Array(String),
  revoked Bool,
  created_at DateTime64(3, 'UTC')
) ENGINE = {{engine ReplacingMergeTree(version)}} ORDER BY key_hash;

{{distributed api_keys by cityHash64(key_hash)}};
