-- Requests of data subjects. The id is made of the client and a digest of the subject, so that all requests for one
-- subject lie beside each other. The version makes the state that comes later in the order of states win, and of
-- equal states the one that was reached first.
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
