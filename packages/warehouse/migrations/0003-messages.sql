-- conversation_id is no part of the key: a corrected one is then an ordinary newer version.
CREATE TABLE IF NOT EXISTS {{local messages}} {{on cluster}} (
  client_id LowCardinality(String),
  date_created DateTime64(6, 'UTC'),
  message_id String,
  version UInt128 COMMENT 'exported_at in microseconds << 64 | partition << 48 | offset',
  exported_at DateTime64(6, 'UTC'),
  uploaded_at DateTime64(6, 'UTC'),
  conversation_id String,
  chatter_id String,
  sender String,
  recipient String,
  message_type LowCardinality(String),
  answer_id String,
  in_response_to String,
  link_was_clicked Nullable(Bool),
  review Nullable(UInt8),
  record String COMMENT 'public JSON',
  INDEX by_conversation conversation_id TYPE bloom_filter(0.01) GRANULARITY 1
) ENGINE = {{engine ReplacingMergeTree(version)}}
PARTITION BY toYYYYMM(date_created)
ORDER BY (client_id, date_created, message_id)
SETTINGS index_granularity = 2048;

{{distributed messages by cityHash64(client_id, message_id)}};
