-- Dates of creation at which a record has rows under other dates as well, in the order of pages: what a page need
-- not ask `record_dates` about one by one. A date that is noted without need costs a look-up. Ids are not noted, so
-- nothing here has to be erased.
CREATE TABLE IF NOT EXISTS {{local moved_dates}} {{on cluster}} (
  client_id LowCardinality(String),
  kind Enum8('conversation' = 1, 'message' = 2),
  date_created DateTime64(6, 'UTC')
) ENGINE = {{engine ReplacingMergeTree}}
ORDER BY (client_id, kind, date_created)
SETTINGS index_granularity = 1024;

{{distributed moved_dates by cityHash64(client_id)}};
