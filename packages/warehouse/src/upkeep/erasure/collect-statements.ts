import { RECORD_KINDS } from "@conversation-export/domain";
import { emailFormSql } from "../../access/email-form-sql.ts";
import { KEY_COLUMNS, KIND, LANDED, limitsOf, recordKind, RUN, type Table, TABLES } from "./erasure-keys.ts";

/**
 * INSERT of the keys of rows of `source` (client_id, subject, id, date_created) that name a person of the
 * run.
 */
const bySubject = (source: string, kind: string, id: string): string => `INSERT INTO job_keys ${KEY_COLUMNS}
  SELECT {run:String}, '${kind}', s.client_id, ${id}, max(p.created_before), any(p.request)
  FROM (SELECT * FROM (${source}) WHERE (client_id, subject) GLOBAL IN
    (SELECT client_id, id FROM job_keys WHERE ${RUN} AND kind = '${KIND.subject}')) AS s
  GLOBAL INNER JOIN ${limitsOf(KIND.subject)} AS p ON s.client_id = p.client_id AND s.subject = p.id
  WHERE s.date_created < p.created_before GROUP BY s.client_id, s.id`;

const CLIENTS = `client_id GLOBAL IN (SELECT client_id FROM job_keys WHERE ${RUN})`;
const END_USERS = `SELECT client_id, end_user_id AS id, date_created,
  arrayJoin([concat('email:', ${emailFormSql("email")}), concat('end_user_id:', end_user_id)]) AS subject
  FROM end_users WHERE ${CLIENTS}`;
const landed = (
  type: string,
): string => `SELECT client_id, record_id AS id, date_created, arrayJoin(subjects) AS subject
  FROM landing WHERE type = '${type}.exported' AND ${CLIENTS}`;
const CONVERSATIONS = `SELECT client_id, conversation_id AS id, date_created,
  arrayJoin([concat('chatter_id:', chatter_id), concat('end_user_id:', end_user_id)]) AS subject
  FROM conversations WHERE ${CLIENTS}`;
const MESSAGES = `SELECT client_id, message_id AS id, date_created,
  arrayJoin(arrayMap(one -> concat('chatter_id:', one), arrayDistinct([chatter_id, sender, recipient]))) AS subject
  FROM messages WHERE ${CLIENTS}`;

/** INSERT of the keys of all messages of the collected conversations, whoever wrote them. */
const ofConversations = (
  table: string,
  id: string,
  only: string,
): string => `INSERT INTO job_keys ${KEY_COLUMNS}
  SELECT {run:String}, '${KIND.message}', m.client_id, m.id, max(c.created_before), any(c.request)
  FROM (SELECT client_id, ${id} AS id, conversation_id, date_created FROM ${table} WHERE ${only} AND ${CLIENTS}
    AND (client_id, conversation_id) GLOBAL IN
      (SELECT client_id, id FROM job_keys WHERE ${RUN} AND kind = '${KIND.conversation}')) AS m
  GLOBAL INNER JOIN ${limitsOf(KIND.conversation)} AS c ON m.client_id = c.client_id AND m.conversation_id = c.id
  WHERE m.date_created < c.created_before GROUP BY m.client_id, m.id`;

/** INSERT of the keys of all rows of one table with a collected id, under every date. */
const rowsOf = (table: string, { kind, id, date, only = "1" }: Table["records"][number]): string => {
  const found = kind === "end_user" ? KIND.subject : KIND[kind];
  const value = kind === "end_user" ? `concat('end_user_id:', ${id})` : id;
  return `INSERT INTO job_keys ${KEY_COLUMNS}
    SELECT DISTINCT {run:String}, '${recordKind(kind)}', r.client_id, r.id, r.date_created, f.request
    FROM (SELECT client_id, ${id} AS id, ${value} AS value, ${date} AS date_created FROM ${table}
      WHERE ${only} AND ${CLIENTS} AND (client_id, ${value}) GLOBAL IN
        (SELECT client_id, id FROM job_keys WHERE ${RUN} AND kind = '${found}')) AS r
    GLOBAL INNER JOIN ${limitsOf(found)} AS f ON r.client_id = f.client_id AND r.value = f.id
    WHERE r.date_created < f.created_before`;
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
  [END_USERS, landed("end_user")].map((source) =>
    bySubject(source, KIND.subject, "concat('end_user_id:', s.id)"),
  ),
  [
    ...[CONVERSATIONS, landed("conversation")].map((source) => bySubject(source, KIND.conversation, "s.id")),
    ...[MESSAGES, landed("message")].map((source) => bySubject(source, KIND.message, "s.id")),
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
