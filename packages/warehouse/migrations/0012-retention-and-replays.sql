-- How long the records of a client are kept after their creation; 0: for ever.
{{alter clients ADD COLUMN IF NOT EXISTS retention_days UInt32}};

-- Dead letters that were sent to their topic again. A letter is known by the first arrival of its record and by how
-- often that was replayed before, so a letter that was written twice is one letter.
CREATE TABLE IF NOT EXISTS {{local replayed_letters}} {{on cluster}} (
  topic LowCardinality(String) COMMENT 'that the record came from',
  partition UInt16 COMMENT 'of the first arrival',
  offset UInt64 COMMENT 'of the first arrival',
  arrived_at DateTime64(3, 'UTC') COMMENT 'bus time of the first arrival; 1970 when it is unknown',
  replays UInt16 COMMENT 'before this one',
  version UInt64 COMMENT 'milliseconds',
  run_id String,
  letter_partition UInt16 COMMENT 'where the letter stands among the dead letters',
  letter_offset UInt64,
  replayed_at DateTime64(3, 'UTC')
) ENGINE = {{engine ReplacingMergeTree(version)}}
ORDER BY (topic, partition, offset, arrived_at, replays)
TTL toDateTime(replayed_at) + INTERVAL 400 DAY;

{{distributed replayed_letters by cityHash64(topic, partition, offset)}};

-- Where the scheduled comparison of the bus with the tables goes on.
CREATE TABLE IF NOT EXISTS {{local reconciled}} {{on cluster}} (
  topic LowCardinality(String),
  partition UInt16,
  version UInt64 COMMENT 'milliseconds',
  next_offset UInt64,
  until DateTime64(3, 'UTC') COMMENT 'end of the hour that was compared last'
) ENGINE = {{engine ReplacingMergeTree(version)}} ORDER BY (topic, partition);

{{distributed reconciled by cityHash64(topic)}};
