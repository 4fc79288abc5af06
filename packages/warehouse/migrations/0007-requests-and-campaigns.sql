-- Requests of data subjects. The id is made of the client and a digest of the subject, so that all requests for one
-- subject lie beside each other. The version makes the state that comes later in the order of states win, and of
-- equal states the one that was reached first.
CREATE TABLE IF NOT EXISTS {{local data_subject_requests}} {{on cluster}} (
  client_id String,
  request_id String COMMENT 'digest of client and subject, dash, number of the request for this subject',
  version UInt64 COMMENT 'place of the status << 48 | 2^48 - 1 - milliseconds',
  request_type LowCardinality(String),
  email String COMMENT 'empty when none was given',
  identifiers String COMMENT 'JSON array of type and value',
  status LowCardinality(String),
  received_at DateTime64(3, 'UTC'),
  updated_at DateTime64(3, 'UTC')
) ENGINE = {{engine ReplacingMergeTree(version)}} ORDER BY (client_id, request_id);

{{distributed data_subject_requests by cityHash64(client_id)}};

-- Campaigns that a client may trigger; the version is the instant of the change.
CREATE TABLE IF NOT EXISTS {{local campaigns}} {{on cluster}} (
  client_id String,
  campaign_key String,
  version UInt64,
  languages Array(String) COMMENT 'empty: any language',
  deleted Bool,
  created_at DateTime64(3, 'UTC')
) ENGINE = {{engine ReplacingMergeTree(version)}} ORDER BY (client_id, campaign_key);

{{distributed campaigns by cityHash64(client_id)}};
