-- Written before the rows: with one date here no other row is readable. One column names the record: look-ups read two
-- only.
CREATE TABLE IF NOT EXISTS {{local record_dates}} {{on cluster}} (
  client_id LowCardinality(String),
  record String COMMENT 'bytes of the client id / client id / c or m / id',
  date_created DateTime64(6, 'UTC'),
  added_at DateTime DEFAULT now() COMMENT 'retention leaves what was added shortly before',
  id String ALIAS substring(record, length(toString(length(client_id))) + length(client_id) + 5),
  kind String ALIAS if(substring(record, length(toString(length(client_id))) + length(client_id) + 3, 1) = 'c', 'conversation', 'message')
) ENGINE = {{engine ReplacingMergeTree}}
ORDER BY (record, date_created)
SETTINGS index_granularity = 1024;

{{distributed record_dates by cityHash64(client_id, substring(record, length(toString(length(client_id))) + length(client_id) + 5))}};

-- A date without need costs a look-up. No ids, so nothing to erase.
CREATE TABLE IF NOT EXISTS {{local moved_dates}} {{on cluster}} (
  client_id LowCardinality(String),
  kind Enum8('conversation' = 1, 'message' = 2),
  date_created DateTime64(6, 'UTC')
) ENGINE = {{engine ReplacingMergeTree}}
ORDER BY (client_id, kind, date_created)
SETTINGS index_granularity = 1024;

{{distributed moved_dates by cityHash64(client_id)}};
