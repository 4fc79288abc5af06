-- A digest of client and subject begins the id. The later status wins, of equal ones the earlier row.
CREATE TABLE IF NOT EXISTS {{local data_subject_requests}} {{on cluster}} (
  client_id String,
  request_id String COMMENT 'digest of client and subject, dash, number of the request for this subject',
  version UInt64 COMMENT 'place of the status << 48 | 2^48 - 1 - milliseconds',
  request_type LowCardinality(String),
  email String COMMENT 'empty when none was given',
  identifiers String COMMENT 'JSON array of type and value',
  status LowCardinality(String),
  received_at DateTime64(3, 'UTC'),
  updated_at DateTime64(3, 'UTC'),
  named UInt16 COMMENT 'how many addresses and ids it was made with, counted for each client and day',
  receipt String COMMENT 'rows deleted, by table, as JSON; names nobody',
  hidden_at DateTime64(3, 'UTC') COMMENT 'since when readers do not see what it is about; 1970: not yet'
) ENGINE = {{engine ReplacingMergeTree(version)}} ORDER BY (client_id, request_id);

{{distributed data_subject_requests by cityHash64(client_id)}};

-- A record's id, or the keyed hash of a person's identifier. Only added, but for ids of end users that writers found.
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

-- Kinds: conversation, message, chatter_id, end_user_id, email; `… record` with one date each; `rows` counts for the
-- receipt; `run` names a run. Requests `found/…`, `again/…`, `preview/…` are nobody's; `expired/…` are retention's,
-- also with `… moved` and `… stale`: live and other dates of a moved record.
CREATE TABLE IF NOT EXISTS {{local erasure_keys}} {{on cluster}} (
  client_id LowCardinality(String),
  phase Enum8('found' = 1, 'erased' = 2, 'deleting' = 3)
    COMMENT 'found: nothing happens yet; erased: readers leave it out; deleting: rows are deleted',
  kind LowCardinality(String),
  id String,
  created_before DateTime64(6, 'UTC') COMMENT 'records created earlier are covered',
  date_created DateTime64(6, 'UTC') COMMENT 'of a record',
  request_id String,
  rows UInt64 COMMENT 'the largest count stays',
  added_at DateTime DEFAULT now()
) ENGINE = {{engine ReplacingMergeTree(rows)}}
ORDER BY (client_id, phase, kind, id, created_before, date_created, request_id)
SETTINGS index_granularity = 1024;

{{distributed erasure_keys by cityHash64(client_id)}};
