-- Versions are the instants of changes.
CREATE TABLE IF NOT EXISTS {{local clients}} {{on cluster}} (
  client_id String,
  version UInt64,
  link_bounds LowCardinality(String),
  deleted Bool,
  created_at DateTime64(3, 'UTC'),
  rate_limits Map(String, String) COMMENT 'name of a limit to its windows; a name that is missing has the configured ones',
  retention_days UInt32 COMMENT 'days after which records are erased: after their creation, end users after their last update; 0: never'
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
  created_at DateTime64(3, 'UTC'),
  expires_at DateTime64(3, 'UTC') COMMENT '1970: never'
) ENGINE = {{engine ReplacingMergeTree(version)}} ORDER BY key_hash;

{{distributed api_keys by cityHash64(key_hash)}};

CREATE TABLE IF NOT EXISTS {{local campaigns}} {{on cluster}} (
  client_id String,
  campaign_key String,
  version UInt64,
  languages Array(String) COMMENT 'empty: any language',
  deleted Bool,
  created_at DateTime64(3, 'UTC')
) ENGINE = {{engine ReplacingMergeTree(version)}} ORDER BY (client_id, campaign_key);

{{distributed campaigns by cityHash64(client_id)}};

-- Registering such a client makes its records readable.
CREATE TABLE IF NOT EXISTS {{local unregistered_clients}} {{on cluster}} (
  client_id String,
  day Date COMMENT 'of ingest, in UTC',
  records UInt64
) ENGINE = {{engine SummingMergeTree(records)}}
ORDER BY (client_id, day)
TTL day + INTERVAL 30 DAY;

{{distributed unregistered_clients by cityHash64(client_id)}};
