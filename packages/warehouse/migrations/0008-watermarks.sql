-- The largest instant wins: writers need not agree.
CREATE TABLE IF NOT EXISTS {{local watermarks}} {{on cluster}} (
  list LowCardinality(String) COMMENT 'a list, or what else is complete up to it: changes, changes of a list, changes with dates known; or topic of a list',
  version UInt64 COMMENT 'the instant in microseconds',
  instant DateTime64(6, 'UTC') COMMENT 'every event that reached the bus before it is readable; of a topic: its id was found',
  topic_id String COMMENT 'of a topic: tells it from one of the same name that was deleted',
  created_anew_at DateTime64(3, 'UTC') COMMENT 'when another id was found; 1970: never'
) ENGINE = {{engine ReplacingMergeTree(version)}} ORDER BY list;

{{distributed watermarks by cityHash64(list)}};

-- INSERTs are refused unless their stamp is above `announced` and their suppressions reach `required`. Also
-- `generation`, `stamp of …` (slow batches), `jobs …` (live).
CREATE TABLE IF NOT EXISTS {{local coordination}} {{on cluster}} (
  name String,
  version UInt64 COMMENT 'the largest wins: the value itself, or the instant in microseconds at which a process told it',
  value UInt64
) ENGINE = {{engine ReplacingMergeTree(version)}} ORDER BY name
TTL toDateTime(intDiv(version, 1000000)) + INTERVAL 1 DAY DELETE WHERE match(name, '^(stamp of|jobs) ');

{{distributed coordination by cityHash64(name)}};
