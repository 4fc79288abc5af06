import {
  CONVERSATION_KIND,
  DATED_KINDS,
  type DatedKind,
  KIND_NAMES,
  ownTableOf,
  personsOf,
  RECORD_KINDS,
  type RecordKind,
} from "@conversation-export/domain";
import { emailFormSql } from "../../access/email-form-sql.ts";
import { movedDatesSql, recordNameSql } from "../../tables/record-dates.ts";
import { nameOfId, OF_PERSON, OF_RUN, recordKind, RUN, SUBJECT, type Table, TABLES } from "./erasure-keys.ts";

const namesOf = (condition: string, name = "id") => {
  const from = `FROM erasure_keys WHERE phase = {names:String} AND ${condition} AND ${RUN}`;
  return {
    from,
    select: `SELECT client_id, ${name} ${from}`,
    limits: `SELECT client_id, ${name} AS name, request_id, max(created_before) AS before ${from}
      GROUP BY client_id, name, request_id`,
  };
};
type Names = ReturnType<typeof namesOf>;
const PERSONS = namesOf(OF_PERSON, SUBJECT);

const isOneOf = ({ select }: Names, name: string): string => `(client_id, ${name}) GLOBAL IN (${select})`;

const covered = (rows: string, { limits }: Names): string => `FROM (${rows}) AS r
    GLOBAL INNER JOIN (${limits}) AS n ON r.client_id = n.client_id AND r.name = n.name
    WHERE r.date_created < n.before`;

const insertNames = (kind: string, rows: string, names: Names): string =>
  `INSERT INTO erasure_keys (client_id, phase, kind, id, created_before, request_id)
    SELECT r.client_id, {names:String}, '${kind}', r.id, max(n.before), n.request_id ${covered(rows, names)}
    GROUP BY r.client_id, r.id, n.request_id`;

const CLIENTS = `client_id GLOBAL IN (SELECT client_id FROM ${OF_RUN})`;
const stored = (kind: RecordKind): string => {
  const { name, id } = ownTableOf(kind);
  const subjects = personsOf(kind).flatMap(([subject, columns]) =>
    columns.map((column) => `concat('${subject}:', ${subject === "email" ? emailFormSql(column) : column})`),
  );
  return `SELECT client_id, ${id} AS id, date_created, arrayJoin(arrayDistinct([${subjects.join(", ")}])) AS subject
  FROM ${name} WHERE ${CLIENTS}`;
};
const landed = (kind: RecordKind): string =>
  `SELECT client_id, record_id AS id, date_created, arrayJoin(subjects) AS subject
    FROM landing WHERE type = '${RECORD_KINDS[kind].type}' AND ${CLIENTS}`;
const NAMING = KIND_NAMES.filter((kind) => personsOf(kind).length > 0);

const bySubject = (kind: RecordKind): string[] =>
  [stored(kind), landed(kind)].map((source) =>
    insertNames(
      nameOfId(kind),
      `SELECT client_id, id, date_created, subject AS name FROM (${source}) WHERE ${isOneOf(PERSONS, "subject")}`,
      PERSONS,
    ),
  );

/** Whomever they name. */
const ofConversations = (kind: RecordKind, table: string, id: string, only: string): string => {
  const names = namesOf(`kind = '${CONVERSATION_KIND}'`);
  const rows = `SELECT client_id, ${id} AS id, date_created, conversation_id AS name FROM ${table}
    WHERE ${only} AND ${CLIENTS} AND ${isOneOf(names, "conversation_id")}`;
  return insertNames(kind, rows, names);
};

/** Else an older version, exported under a later date, would become live. */
const underLaterDates = (kind: DatedKind): string => {
  const { name, id } = ownTableOf(kind);
  const { from, limits } = namesOf(`kind = '${kind}'`);
  const dates = movedDatesSql(`SELECT ${recordNameSql("client_id", kind, "id")} ${from}`);
  return `INSERT INTO erasure_keys (client_id, phase, kind, id, created_before, request_id)
    SELECT r.client_id, {names:String}, '${kind}', r.id, addMicroseconds(r.latest, 1), n.request_id
    FROM (SELECT client_id, ${id} AS id, argMax(date_created, (version, uploaded_at)) AS live, max(date_created) AS latest
      FROM ${name} WHERE (client_id, date_created, ${id}) GLOBAL IN (SELECT client_id, date_created, id FROM (${dates}))
      GROUP BY client_id, ${id}) AS r
    GLOBAL INNER JOIN (${limits}) AS n ON r.client_id = n.client_id AND r.id = n.name
    WHERE r.live < n.before AND r.latest >= n.before`;
};

const rowsOf = (table: string, { kind, id, date, only = "1" }: Table["records"][number]): string => {
  const names = namesOf(`kind = '${nameOfId(kind)}'`);
  const rows = `SELECT client_id, ${id} AS id, ${date} AS date_created, ${id} AS name FROM ${table}
    WHERE ${only} AND ${CLIENTS} AND ${isOneOf(names, id)}`;
  return `INSERT INTO erasure_keys (client_id, phase, kind, id, date_created, request_id)
    SELECT DISTINCT r.client_id, {records:String}, '${recordKind(kind)}', r.id, r.date_created, n.request_id
    ${covered(rows, names)}`;
};

/** Also of events and superseded versions. */
export const STORED_SUBJECTS = `SELECT client_id, subject FROM (${[
  ...NAMING.map(stored),
  ...NAMING.map(landed),
]
  .map((source) => `SELECT client_id, subject FROM (${source})`)
  .join(" UNION ALL ")}) GROUP BY client_id, subject`;

type Step = {
  readonly statements: readonly string[];
  /** Without masked rows. */
  readonly live?: true;
};

// Steps in order: persons' ids by their addresses, then records that name them.
export const BY_SUBJECT: readonly Step[] = [
  { statements: NAMING.filter((kind) => RECORD_KINDS[kind].idNames !== null).flatMap(bySubject) },
  { statements: NAMING.filter((kind) => RECORD_KINDS[kind].idNames === null).flatMap(bySubject) },
];
const OF_CONVERSATION = KIND_NAMES.filter((kind) =>
  RECORD_KINDS[kind].form.columns.some(({ name }) => name === "conversation_id"),
);
// Of conversations first: their messages are collected up to the same date in each look.
export const BY_ID: readonly Step[] = [
  { statements: [underLaterDates(CONVERSATION_KIND)], live: true },
  {
    statements: OF_CONVERSATION.flatMap((kind) => {
      const { name, id, type } = ownTableOf(kind);
      return [
        ofConversations(kind, name, id, "1"),
        ofConversations(kind, "landing", "record_id", `type = '${type}'`),
      ];
    }),
  },
  {
    statements: DATED_KINDS.filter((kind) => kind !== CONVERSATION_KIND).map(underLaterDates),
    live: true,
  },
  { statements: TABLES.flatMap(({ table, records }) => records.map((record) => rowsOf(table, record))) },
];
