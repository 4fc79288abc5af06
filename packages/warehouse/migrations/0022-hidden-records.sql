-- Whom the open requests for erasure are about, and which records: readers leave these out while their rows are still
-- stored. Rows go when their request has ended.
CREATE TABLE IF NOT EXISTS {{local hidden_records}} {{on cluster}} (
  client_id LowCardinality(String),
  kind LowCardinality(String) COMMENT 'conversation, message: a value is its id; chatter_id, end_user_id, email: of a person',
  value String,
  created_before DateTime64(6, 'UTC') COMMENT 'records created earlier are hidden',
  request_id String
) ENGINE = {{engine ReplacingMergeTree}}
ORDER BY (client_id, kind, value, created_before, request_id);

{{distributed hidden_records by cityHash64(client_id)}};

-- Since when readers do not see what a request is about; the first of 1970: not yet.
{{alter data_subject_requests ADD COLUMN IF NOT EXISTS hidden_at DateTime64(3, 'UTC')}};
