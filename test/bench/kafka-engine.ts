/** The peer neither validates nor normalises. */
export const kafkaEngine = (
  brokers: string,
  topic: string,
  group: string,
): { readonly create: readonly string[]; readonly drop: readonly string[] } => ({
  create: createStatements(brokers, topic, group),
  drop: [
    ...VIEWS.map((view) => `DROP VIEW ${view} SYNC`),
    ...TABLES.map((table) => `DROP TABLE ${table} SYNC`),
  ],
});

const VIEWS = ["peer_consumer", "peer_handoffs", "peer_updates", "peer_conversations"];
const TABLES = ["peer_queue", "peer_parsed"];

/** Read once: each further JSONExtract parses the text again. */
const DATA = `Tuple(_id String, date_created String, date_updated String, chatter_id String, end_user_id String,
  language String, platform String, device String, browser String,
  automated_resolution_classification String, generated_topic_label String, last_agent_id String,
  csat Tuple(score Nullable(Float64)),
  is_engaged Nullable(Bool), is_escalated Nullable(Bool), is_test_user Nullable(Bool),
  agent_handle_time Nullable(Float64), bot_handle_time Nullable(Float64),
  handoffs Array(Tuple(name String, handoff_id String, id String, date_created String,
    outcome_status String, reason_code Nullable(String), reasoning String)))`;

const createStatements = (brokers: string, topic: string, group: string): readonly string[] => [
  `CREATE TABLE peer_queue (clientid String, time String, data String) ENGINE = Kafka SETTINGS
    kafka_broker_list = '${brokers}', kafka_topic_list = '${topic}', kafka_group_name = '${group}',
    kafka_format = 'JSONEachRow', kafka_num_consumers = 1, kafka_max_block_size = 65536,
    kafka_poll_max_batch_size = 65536, kafka_flush_interval_ms = 1000`,
  `CREATE TABLE peer_parsed (
    client_id String, exported_at DateTime64(6, 'UTC'), version UInt128, data String,
    created DateTime64(6, 'UTC'), updated DateTime64(6, 'UTC'), stored DateTime64(6, 'UTC'),
    d ${DATA}
  ) ENGINE = Null`,
  `CREATE MATERIALIZED VIEW peer_handoffs TO handoffs AS
    WITH arrayJoin(d.handoffs) AS h, parseDateTime64BestEffortOrZero(h.date_created, 6, 'UTC') AS at
    SELECT client_id, created AS conversation_date_created,
      d._id AS conversation_id, if(h.handoff_id = '', h.id, h.handoff_id) AS target,
      if(h.handoff_id = '', 'id', 'handoff_id') AS target_kind,
      bitShiftLeft(toUInt256(toUnixTimestamp64Micro(at)), 128) + peer_parsed.version AS version,
      stored AS uploaded_at, at AS date_created, h.name AS name, h.outcome_status AS outcome_status,
      h.reason_code AS reason_code, toJSONString(h) AS entry
    FROM peer_parsed`,
  `CREATE MATERIALIZED VIEW peer_updates TO conversation_updates AS
    SELECT client_id, updated AS date_updated, d._id AS conversation_id, version, created AS date_created,
      stored AS uploaded_at
    FROM peer_parsed`,
  `CREATE MATERIALIZED VIEW peer_conversations TO conversations AS
    SELECT client_id, created AS date_created, d._id AS conversation_id, version, exported_at,
      stored AS uploaded_at, updated AS date_updated,
      d.chatter_id AS chatter_id, d.end_user_id AS end_user_id, d.language AS language, d.platform AS platform,
      d.device AS device, d.browser AS browser,
      d.automated_resolution_classification AS automated_resolution_classification,
      d.generated_topic_label AS generated_topic_label, d.last_agent_id AS last_agent_id,
      d.is_engaged AS is_engaged, d.is_escalated AS is_escalated, d.is_test_user AS is_test_user,
      d.agent_handle_time AS agent_handle_time, d.bot_handle_time AS bot_handle_time,
      d.csat.score AS csat_score, data AS head, '' AS tail
    FROM peer_parsed`,
  // Last, because it starts the consumption.
  `CREATE MATERIALIZED VIEW peer_consumer TO peer_parsed AS
    SELECT clientid AS client_id, parseDateTime64BestEffortOrZero(time, 6, 'UTC') AS exported_at, data,
      JSONExtract(data, '${DATA}') AS d,
      bitShiftLeft(toUInt128(toUnixTimestamp64Micro(exported_at)), 64)
        + bitShiftLeft(toUInt64(_partition), 48) + toUInt64(_offset) AS version,
      parseDateTime64BestEffortOrZero(d.date_created, 6, 'UTC') AS created,
      parseDateTime64BestEffortOrZero(d.date_updated, 6, 'UTC') AS updated, now64(6) AS stored
    FROM peer_queue`,
];
