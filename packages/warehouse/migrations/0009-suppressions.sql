-- What was erased and must not come back. A value is the id of a conversation or message, or the keyed hash of an
-- identifier of a person. Rows are only ever added, but for the ids of end users that a writer has found.
CREATE TABLE IF NOT EXISTS {{local suppressions}} {{on cluster}} (
  client_id String,
  kind Enum8('secret' = 0, 'conversation' = 1, 'message' = 2, 'subject' = 3, 'end_user' = 4)
    COMMENT 'secret: a hash of the secret itself, by which another one is recognised; end_user: an id until the next erasure',
  value String,
  version UInt64 COMMENT 'created_before in microseconds',
  created_before DateTime64(6, 'UTC') COMMENT 'records created earlier are dropped',
  request_id String COMMENT 'found: a writer has met the person in a record with this id later; looked at: an erasure has seen to that',
  added_at DateTime64(6, 'UTC') DEFAULT now64(6)
) ENGINE = {{engine ReplacingMergeTree(version)}} ORDER BY (client_id, kind, value);

{{distributed suppressions by cityHash64(client_id, value)}};

-- A writer that was paused must not write what was erased meanwhile: its INSERT says until when it may begin, and is
-- refused later. The comment of a query is the one setting with free text that every server knows.
ALTER TABLE {{local conversations}} {{on cluster}} ADD CONSTRAINT IF NOT EXISTS begins_in_time CHECK NOT throwIf(
  startsWith(getSetting('log_comment'), 'not after ')
    AND toUnixTimestamp64Milli(now64(3)) > toInt64OrZero(substring(getSetting('log_comment'), 11)),
  'the INSERT begins later than its writer may write');

ALTER TABLE {{local conversation_updates}} {{on cluster}} ADD CONSTRAINT IF NOT EXISTS begins_in_time CHECK NOT throwIf(
  startsWith(getSetting('log_comment'), 'not after ')
    AND toUnixTimestamp64Milli(now64(3)) > toInt64OrZero(substring(getSetting('log_comment'), 11)),
  'the INSERT begins later than its writer may write');

ALTER TABLE {{local handoffs}} {{on cluster}} ADD CONSTRAINT IF NOT EXISTS begins_in_time CHECK NOT throwIf(
  startsWith(getSetting('log_comment'), 'not after ')
    AND toUnixTimestamp64Milli(now64(3)) > toInt64OrZero(substring(getSetting('log_comment'), 11)),
  'the INSERT begins later than its writer may write');

ALTER TABLE {{local messages}} {{on cluster}} ADD CONSTRAINT IF NOT EXISTS begins_in_time CHECK NOT throwIf(
  startsWith(getSetting('log_comment'), 'not after ')
    AND toUnixTimestamp64Milli(now64(3)) > toInt64OrZero(substring(getSetting('log_comment'), 11)),
  'the INSERT begins later than its writer may write');

ALTER TABLE {{local end_users}} {{on cluster}} ADD CONSTRAINT IF NOT EXISTS begins_in_time CHECK NOT throwIf(
  startsWith(getSetting('log_comment'), 'not after ')
    AND toUnixTimestamp64Milli(now64(3)) > toInt64OrZero(substring(getSetting('log_comment'), 11)),
  'the INSERT begins later than its writer may write');

ALTER TABLE {{local landing}} {{on cluster}} ADD CONSTRAINT IF NOT EXISTS begins_in_time CHECK NOT throwIf(
  startsWith(getSetting('log_comment'), 'not after ')
    AND toUnixTimestamp64Milli(now64(3)) > toInt64OrZero(substring(getSetting('log_comment'), 11)),
  'the INSERT begins later than its writer may write');
