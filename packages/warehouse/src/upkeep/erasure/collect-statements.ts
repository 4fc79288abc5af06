import { RECORD_KINDS, type RecordKind } from "@conversation-export/domain";
import { emailFormSql } from "../../access/email-form-sql.ts";
import { LANDED, OF_PERSON, OF_RUN, recordKind, RUN, SUBJECT, type Table, TABLES } from "./erasure-keys.ts";

/** What the run has under a condition: SELECT of the names, and of their limits for each request. */
const namesOf = (condition: string, name = "id") => {
  const from = `FROM erasure_keys WHERE phase = {names:String} AND ${condition} AND ${RUN}`;
  return {
    select: `SELECT client_id, ${name} ${from}`,
    limits: `SELECT client_id, ${name} AS name, request_id, max(created_before) AS before ${from}
      GROUP BY client_id, name, request_id`,
  };
};
type Names = ReturnType<typeof namesOf>;
const PERSONS = namesOf(OF_PERSON, SUBJECT);

const isOneOf = ({ select }: Names, name: string): string => `(client_id, ${name}) GLOBAL IN (${select})`;

/** FROM of those of `rows` (client_id, id, date_created, name) that a request of the run covers. */
const covered = (rows: string, { limits }: Names): string => `FROM (${rows}) AS r
    GLOBAL INNER JOIN (${limits}) AS n ON r.client_id = n.client_id AND r.name = n.name
    WHERE r.date_created < n.before`;

const insertNames = (kind: string, rows: string, names: Names): string =>
  `INSERT INTO erasure_keys (client_id, phase, kind, id, created_before, request_id)
    SELECT r.client_id, {names:String}, '${kind}', r.id, max(n.before), n.request_id ${covered(rows, names)}
    GROUP BY r.client_id, r.id, n.request_id`;

const CLIENTS = `client_id GLOBAL IN (SELECT client_id FROM ${OF_RUN})`;
const END_USERS = `SELECT client_id, end_user_id AS id, date_created,
  arrayJoin([concat('email:', ${emailFormSql("email")}), concat('end_user_id:', end_user_id)]) AS subject
  FROM end_users WHERE ${CLIENTS}`;
const landed = (kind: RecordKind): string =>
  `SELECT client_id, record_id AS id, date_created, arrayJoin(subjects) AS subject
    FROM landing WHERE type = '${kind}.exported' AND ${CLIENTS}`;
const CONVERSATIONS = `SELECT client_id, conversation_id AS id, date_created,
  arrayJoin([concat('chatter_id:', chatter_id), concat('end_user_id:', end_user_id)]) AS subject
  FROM conversations WHERE ${CLIENTS}`;
const MESSAGES = `SELECT client_id, message_id AS id, date_created,
  arrayJoin(arrayMap(one -> concat('chatter_id:', one), arrayDistinct([chatter_id, sender, recipient]))) AS subject
  FROM messages WHERE ${CLIENTS}`;

const bySubject = (kind: string, ...sources: readonly string[]): string[] =>
  sources.map((source) =>
    insertNames(
      kind,
      `SELECT client_id, id, date_created, subject AS name FROM (${source}) WHERE ${isOneOf(PERSONS, "subject")}`,
      PERSONS,
    ),
  );

/** All messages of the collected conversations, whoever wrote them. */
const ofConversations = (table: string, id: string, only: string): string => {
  const names = namesOf("kind = 'conversation'");
  const rows = `SELECT client_id, ${id} AS id, date_created, conversation_id AS name FROM ${table}
    WHERE ${only} AND ${CLIENTS} AND ${isOneOf(names, "conversation_id")}`;
  return insertNames("message", rows, names);
};

/** All rows of one table with a collected id, under every date. */
const rowsOf = (table: string, { kind, id, date, only = "1" }: Table["records"][number]): string => {
  const names = namesOf(`kind = '${kind === "end_user" ? "end_user_id" : kind}'`);
  const rows = `SELECT client_id, ${id} AS id, ${date} AS date_created, ${id} AS name FROM ${table}
    WHERE ${only} AND ${CLIENTS} AND ${isOneOf(names, id)}`;
  return `INSERT INTO erasure_keys (client_id, phase, kind, id, date_created, request_id)
    SELECT DISTINCT r.client_id, {records:String}, '${recordKind(kind)}', r.id, r.date_created, n.request_id
    ${covered(rows, names)}`;
};

/** SQL for all identifiers in stored rows of the run's clients, including events and superseded versions. */
export const STORED_SUBJECTS = `SELECT client_id, subject FROM (${[
  END_USERS,
  CONVERSATIONS,
  MESSAGES,
  ...LANDED.map(landed),
]
  .map((source) => `SELECT client_id, subject FROM (${source})`)
  .join(" UNION ALL ")}) GROUP BY client_id, subject`;

// Steps in order; statements of one step are independent. First the ids of end users with an address of the
// person, then the conversations and messages that name the person.
export const BY_SUBJECT: readonly (readonly string[])[] = [
  bySubject("end_user_id", END_USERS, landed("end_user")),
  [
    ...bySubject("conversation", CONVERSATIONS, landed("conversation")),
    ...bySubject("message", MESSAGES, landed("message")),
  ],
];
/** Steps in order: messages of the collected conversations, then the keys of all rows. */
export const BY_ID: readonly (readonly string[])[] = [
  [
    ofConversations("messages", "message_id", "1"),
    ofConversations("landing", "record_id", `type = '${RECORD_KINDS.message.type}'`),
  ],
  TABLES.flatMap(({ table, records }) => records.map((record) => rowsOf(table, record))),
];
