-- The dates under which each record has rows, written before them: a reader that finds one date here knows that
-- no other row of the record is readable. One column names the record, because look-ups by it read two columns
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

ALTER TABLE {{local record_dates}} {{on cluster}} ADD CONSTRAINT IF NOT EXISTS begins_in_time CHECK NOT throwIf(
  startsWith(getSetting('log_comment'), 'not after ')
    AND toUnixTimestamp64Milli(now64(3)) > toInt64OrZero(substring(getSetting('log_comment'), 11)),
  'the INSERT begins later than its writer may write');

INSERT INTO {{reached record_dates}} (client_id, record, date_created)
  SELECT client_id, concat(toString(length(client_id)), '/', client_id, '/c/', conversation_id), date_created
  FROM {{reached conversations}};

INSERT INTO {{reached record_dates}} (client_id, record, date_created)
  SELECT client_id, concat(toString(length(client_id)), '/', client_id, '/m/', message_id), date_created
  FROM {{reached messages}};
