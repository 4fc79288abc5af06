-- Up to which instant a list is complete. The largest instant wins, so several writers need not agree.
CREATE TABLE IF NOT EXISTS {{local watermarks}} {{on cluster}} (
  list LowCardinality(String) COMMENT 'conversations, messages or end_users',
  version UInt64 COMMENT 'the instant in microseconds',
  instant DateTime64(6, 'UTC') COMMENT 'every event that reached the bus before it is readable',
  topic_id String COMMENT 'tells the topic from one of the same name that was deleted; empty: the brokers tell none',
  created_anew_at DateTime64(3, 'UTC') COMMENT 'when another id was found; 1970: never'
) ENGINE = {{engine ReplacingMergeTree(version)}} ORDER BY list;

{{distributed watermarks by cityHash64(list)}};
