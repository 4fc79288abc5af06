import type { ClickHouseClient, ClickHouseSettings } from "@clickhouse/client";
import { formatTimestampZ, type Micros } from "@conversation-export/domain";
import { connect, type WarehouseAccess } from "./connection.ts";
import { createDeletion } from "./deletion.ts";
import { emailFormSql } from "./email-form-sql.ts";
import type { Topology } from "./migration-template.ts";
import { FOUND_LATER, LOOKED_AT, SUPPRESSION_INSERT_SECONDS } from "./suppression-store.ts";
import { toWarehouseError } from "./warehouse-error.ts";

/** An identifier of a person, as `subjectOf` writes it, whose records created before an instant are to be erased. */
export type ErasureSubject = {
  readonly clientId: string;
  readonly subject: string;
  readonly createdBefore: Micros;
  readonly requestId: string;
};

/** What a run has to look at beside the persons of its requests. */
export type ErasureBeginning = {
  /** Ids of end users that writers have found. */
  readonly foundEndUsers: number;
  /** Ids of conversations and messages of former runs and of writers. */
  readonly ids: number;
};

/** What a run that erases again has to look at. */
export type ErasureAgain = {
  /** Whose suppressions they are. */
  readonly clients: number;
  /** Suppressed ids of conversations and messages. */
  readonly ids: number;
  /** Suppressed identifiers of persons that stored rows name. */
  readonly persons: number;
};

export type ErasureCounts = {
  readonly conversations: number;
  readonly messages: number;
  readonly endUsers: number;
};

/**
 * Finding and deleting everything about persons, by keys that are collected in a table. No query text, address or
 * mutation holds an identifier of a person. Throws `WarehouseError`.
 */
export type ErasureStore = {
  /**
   * Begins a run with its persons, and with what is to be looked at beside: what former attempts at these requests and
   * writers have found, and once more what was suppressed during the last day.
   */
  begin(runId: string, subjects: readonly ErasureSubject[]): Promise<ErasureBeginning>;
  /**
   * Adds to the run what was erased at or after `since`: the ids that were suppressed, and of the identifiers that any
   * stored row names those whose hash was. `hashOf` makes the hash of an identifier as `subjectOf` writes it.
   */
  lookAgain(
    runId: string,
    since: Micros,
    hashOf: (clientId: string, subject: string) => string,
  ): Promise<ErasureAgain>;
  /** How many identifiers the run was given, and clients to look at again; fewer now mean that somebody has ended it. */
  begunWith(runId: string): Promise<number>;
  /** Collects the keys of all records of which any version matches. May be repeated. */
  collect(runId: string): Promise<ErasureCounts>;
  /** Writes suppressions of the collected ids that have none yet. Gives how many. */
  suppressIds(runId: string): Promise<number>;
  /** The identifiers of the run, with those that they have led to. */
  subjects(runId: string): Promise<ErasureSubject[]>;
  /** Rows that are left, by table, also those that are hidden and not gone. */
  remaining(runId: string): Promise<Readonly<Record<string, number>>>;
  /** Deletes all rows of the collected keys, so that no active part holds them. */
  erase(runId: string, tables: readonly string[], signal: AbortSignal): Promise<void>;
  /** The INSERTs that are running. */
  runningInserts(): Promise<ReadonlySet<string>>;
  /**
   * Notes that what was found before the run began is looked at, and removes the ids of end users among it; hashes of
   * them must be stored.
   */
  settleFound(runId: string, signal: AbortSignal): Promise<void>;
  /** Removes the collected ids from the keys of all other jobs. */
  eraseKeys(runId: string, signal: AbortSignal): Promise<void>;
  /** Removes the keys of all runs whose id begins so, and of those that must have died. */
  end(runPrefix: string, signal: AbortSignal): Promise<void>;
  close(): Promise<void>;
};

type Table = {
  readonly table: string;
  /** Of which kind its records are, with the columns of their id and date and what else holds for them. */
  readonly records: readonly {
    readonly kind: "conversation" | "message" | "end_user";
    readonly id: string;
    readonly date: string;
    readonly only?: string;
  }[];
};

const LANDED = ["conversation", "message", "end_user"] as const;
/** In the order of deletion: what makes a record readable first. */
const TABLES: readonly Table[] = [
  {
    table: "conversations",
    records: [{ kind: "conversation", id: "conversation_id", date: "date_created" }],
  },
  {
    table: "conversation_updates",
    records: [{ kind: "conversation", id: "conversation_id", date: "date_created" }],
  },
  {
    table: "handoffs",
    records: [{ kind: "conversation", id: "conversation_id", date: "conversation_date_created" }],
  },
  { table: "messages", records: [{ kind: "message", id: "message_id", date: "date_created" }] },
  { table: "end_users", records: [{ kind: "end_user", id: "end_user_id", date: "date_created" }] },
  {
    table: "landing",
    records: LANDED.map((kind) => ({
      kind,
      id: "record_id",
      date: "date_created",
      only: `type = '${kind}.exported'`,
    })),
  },
];

// Kinds of rows in job_keys. `date_created` is the date of a record in rows of `recordKind`, in the others the instant
// before which a record must have been created; `target` is the request.
const KIND = {
  /** What the run was given, once: by it another run that ends this one is noticed. */
  begun: "erase begun",
  subject: "erase subject",
  conversation: "erase conversation",
  message: "erase message",
} as const;
/** Stands in the place of an identifier: a client of whom everything that was erased is looked at again. */
const AGAIN = "again";
const recordKind = (kind: Table["records"][number]["kind"]): string => `erase ${kind} record`;

const KEY_COLUMNS = "(run_id, kind, client_id, id, date_created, target)";
const RUN = "run_id = {run:String}";

/** Which records of `kind` the run has collected. */
const limitsOf = (
  kind: string,
): string => `(SELECT client_id, id, max(date_created) AS created_before, any(target) AS request
  FROM job_keys WHERE ${RUN} AND kind = '${kind}' GROUP BY client_id, id)`;

const recordsOf = ({ records }: Table): string =>
  records
    .map(({ kind, id, date, only = "1" }) => {
      const keys = `SELECT client_id, date_created, id FROM job_keys WHERE ${RUN} AND kind = '${recordKind(kind)}'`;
      return `(${only} AND (client_id, ${date}, ${id}) GLOBAL IN (${keys}))`;
    })
    .join(" OR ");

/** Rows of `source` (client_id, subject, id, date_created) that name a person of the run. */
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
/** Versions that the table above may have merged away; head and tail are one JSON text but for the handoffs. */
const UPDATES = `SELECT client_id, conversation_id AS id, date_created,
  arrayJoin([concat('chatter_id:', named.1), concat('end_user_id:', named.2)]) AS subject
  FROM (SELECT client_id, conversation_id, date_created,
    JSONExtract(concat(head, '[]', tail), 'Tuple(chatter_id String, end_user_id String)') AS named
    FROM conversation_updates WHERE ${CLIENTS})`;
const MESSAGES = `SELECT client_id, message_id AS id, date_created,
  arrayJoin(arrayMap(one -> concat('chatter_id:', one), arrayDistinct([chatter_id, sender, recipient]))) AS subject
  FROM messages WHERE ${CLIENTS}`;

/** Messages of the conversations that were found, whoever wrote them. */
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

/** The keys of the rows of one table whose ids were found: of every date that one stands under. */
const rowsOf = (table: string, { kind, id, date, only = "1" }: Table["records"][number]): string => {
  const found = kind === "end_user" ? KIND.subject : KIND[kind];
  const value = kind === "end_user" ? `concat('end_user_id:', ${id})` : id;
  return `INSERT INTO job_keys ${KEY_COLUMNS}
    SELECT DISTINCT {run:String}, '${recordKind(kind)}', r.client_id, r.id, r.date_created, ''
    FROM (SELECT client_id, ${id} AS id, ${value} AS value, ${date} AS date_created FROM ${table}
      WHERE ${only} AND ${CLIENTS} AND (client_id, ${value}) GLOBAL IN
        (SELECT client_id, id FROM job_keys WHERE ${RUN} AND kind = '${found}')) AS r
    GLOBAL INNER JOIN ${limitsOf(found)} AS f ON r.client_id = f.client_id AND r.value = f.id
    WHERE r.date_created < f.created_before`;
};

/** Every identifier that a row of the clients of the run names, also an event and a version that is not readable. */
const STORED_SUBJECTS = `SELECT client_id, subject FROM (${[
  END_USERS,
  CONVERSATIONS,
  UPDATES,
  MESSAGES,
  ...LANDED.map(landed),
]
  .map((source) => `SELECT client_id, subject FROM (${source})`)
  .join(" UNION ALL ")}) GROUP BY client_id, subject`;

const AT_SINCE = "fromUnixTimestamp64Micro({since:Int64}, 'UTC')";
/** Suppressed since then, or before and deleted since then. */
const ERASED_SINCE = `(added_at >= ${AT_SINCE} OR (client_id, request_id) GLOBAL IN
  (SELECT client_id, request_id FROM data_subject_requests WHERE status = 'completed' AND updated_at >= ${AT_SINCE}))`;

/** Groups of more than this are kept on disk, bytes. */
const MAX_GROUP_BYTES = "1000000000";
/** Keys of one INSERT. */
const MAX_KEYS = 10_000;

/** A row that was hidden and is not gone counts. */
const WITH_HIDDEN: ClickHouseSettings = { apply_deleted_mask: 0 };

// Who has the address is the person, under any id; what names the person; messages of these conversations; their rows.
// The statements of a step do not need each other.
const BY_SUBJECT: readonly (readonly string[])[] = [
  [END_USERS, landed("end_user")].map((source) =>
    bySubject(source, KIND.subject, "concat('end_user_id:', s.id)"),
  ),
  [
    ...[CONVERSATIONS, UPDATES, landed("conversation")].map((source) =>
      bySubject(source, KIND.conversation, "s.id"),
    ),
    ...[MESSAGES, landed("message")].map((source) => bySubject(source, KIND.message, "s.id")),
  ],
];
const BY_ID: readonly (readonly string[])[] = [
  [
    ofConversations("messages", "message_id", "1"),
    ofConversations("landing", "record_id", "type = 'message.exported'"),
  ],
  TABLES.flatMap(({ table, records }) => records.map((record) => rowsOf(table, record))),
];

/** Ids of the run of one kind that are not suppressed up to where the run needs it. */
const unsuppressed = (kind: "conversation" | "message"): string => `${limitsOf(KIND[kind])} AS f
  GLOBAL LEFT JOIN (SELECT client_id, value, max(created_before) AS before FROM suppressions
    WHERE kind = '${kind}' GROUP BY client_id, value) AS k ON f.client_id = k.client_id AND f.id = k.value
  WHERE k.before < f.created_before`;

/** Waits for all, also when one fails: nothing goes on unseen. */
async function all<T>(promises: readonly Promise<T>[]): Promise<T[]> {
  await Promise.allSettled(promises);
  return Promise.all(promises);
}

/** Of these a row may have slipped in when Redis lost leases: a writer cut off from it may have gone on for a lease. */
const SLIPPED = "added_at BETWEEN now64(6) - INTERVAL 1 DAY AND now64(6) - INTERVAL 10 MINUTE";
/** Suppressed ids that the run looks at: of its requests, found by writers, or once more for the last day's sake. */
const lookedAt = (kind: "conversation" | "message"): string => {
  const ofRequest = `request_id GLOBAL IN (SELECT target FROM job_keys WHERE ${RUN} AND kind = '${KIND.begun}')`;
  const again = `request_id NOT IN ('${FOUND_LATER}', '${LOOKED_AT}') AND ${SLIPPED}`;
  return `INSERT INTO job_keys ${KEY_COLUMNS}
    SELECT {run:String}, '${KIND[kind]}', client_id, value, max(created_before), any(request_id)
    FROM suppressions WHERE kind = '${kind}' AND (client_id, value) GLOBAL IN
      (SELECT client_id, value FROM suppressions WHERE kind = '${kind}'
        AND (${ofRequest} OR request_id = '${FOUND_LATER}' OR ${again}))
    GROUP BY client_id, value
    HAVING countIf(${ofRequest}) > 0
      OR maxIf(added_at, request_id = '${FOUND_LATER}' OR ${again}) > maxIf(added_at, request_id = '${LOOKED_AT}')`;
};

/** `url`: `http://user:password@host:port/database` of the user for jobs. */
export function createErasureStore(
  deps: WarehouseAccess & {
    readonly topology: Topology;
  },
): ErasureStore {
  const { cluster } = deps.topology;
  const deletion = createDeletion(deps);
  const client: ClickHouseClient = connect({
    ...deps,
    maxOpenConnections: 4,
    requestTimeoutMs: 1_800_000,
    settings: {
      async_insert: 0,
      insert_deduplicate: 0,
      // What is hidden in a table may stand in its projection.
      optimize_use_projections: 0,
    },
  });

  async function asked<T>(operation: () => Promise<T>): Promise<T> {
    try {
      return await operation();
    } catch (error) {
      throw toWarehouseError(error);
    }
  }

  async function select<T>(
    query: string,
    parameters: Record<string, unknown> = {},
    settings: ClickHouseSettings = {},
  ): Promise<T[]> {
    const result = await client.query({
      query,
      format: "JSONEachRow",
      clickhouse_settings: settings,
      query_params: parameters,
    });
    return result.json<T>();
  }

  const command = (
    query: string,
    run: string,
    settings: ClickHouseSettings = {},
    parameters: Record<string, unknown> = {},
  ): Promise<unknown> =>
    client.command({ query, query_params: { run, ...parameters }, clickhouse_settings: settings });

  async function* stream<Row>(
    query: string,
    parameters: Record<string, unknown>,
    settings: ClickHouseSettings = {},
  ): AsyncGenerator<Row[]> {
    const result = await client.query({
      query,
      format: "JSONCompactEachRow",
      query_params: parameters,
      clickhouse_settings: settings,
    });
    for await (const rows of result.stream<Row>()) yield rows.map((row) => row.json());
  }

  /** The values travel as rows, which no log repeats. */
  const insertKeys = async (
    runId: string,
    keys: readonly (ErasureSubject & { readonly kind: string; readonly id: string })[],
  ): Promise<void> => {
    if (keys.length === 0) return;
    await client.insert({
      table: "job_keys",
      columns: ["run_id", "kind", "client_id", "id", "date_created", "target"],
      values: keys.map(({ kind, clientId, id, createdBefore, requestId }) => ({
        run_id: runId,
        kind,
        client_id: clientId,
        id,
        date_created: formatTimestampZ(createdBefore),
        target: requestId,
      })),
      format: "JSONEachRow",
    });
  };

  const left = async (table: Table, run: string, settings: ClickHouseSettings): Promise<number> => {
    const sql = `SELECT toString(count()) AS rows FROM ${table.table} WHERE ${recordsOf(table)}`;
    return Number((await select<{ rows: string }>(sql, { run }, settings))[0]?.rows);
  };

  /** Masked rows are no rows for a deletion: their parts are rewritten without them. */
  const dropHidden = async (table: Table, run: string): Promise<void> => {
    const sql = `SELECT DISTINCT _partition_id AS id FROM ${table.table} WHERE ${recordsOf(table)}`;
    for (const { id } of await select<{ id: string }>(sql, { run }, WITH_HIDDEN)) {
      await deletion.dropMasked(table.table, id);
    }
  };

  return {
    begin: (runId, subjects) =>
      asked(async () => {
        const keys = subjects.map((one) => ({ ...one, id: one.subject }));
        // In one INSERT, so that they lie in one part and go together.
        await insertKeys(runId, [
          ...keys.map((key) => ({ ...key, kind: KIND.begun })),
          ...keys.map((key) => ({ ...key, kind: KIND.subject })),
        ]);
        // Rows by which these were found may be deleted already.
        for (const kind of ["conversation", "message"] as const) await command(lookedAt(kind), runId);
        await command(
          `INSERT INTO job_keys ${KEY_COLUMNS}
            SELECT {run:String}, '${KIND.subject}', client_id, concat('end_user_id:', value), max(created_before), '${FOUND_LATER}'
            FROM suppressions WHERE kind = 'end_user' GROUP BY client_id, value`,
          runId,
        );
        const [row] = await select<{ found: string; ids: string }>(
          `SELECT toString(countIf(kind = '${KIND.subject}' AND target = '${FOUND_LATER}')) AS found,
            toString(countIf(kind IN ('${KIND.conversation}', '${KIND.message}'))) AS ids
            FROM job_keys WHERE ${RUN}`,
          { run: runId },
        );
        return { foundEndUsers: Number(row?.found), ids: Number(row?.ids) };
      }),
    lookAgain: (runId, since, hashOf) =>
      asked(async () => {
        const parameters = { run: runId, since };
        await command(
          `INSERT INTO job_keys ${KEY_COLUMNS}
            SELECT DISTINCT {run:String}, '${KIND.begun}', client_id, '${AGAIN}', now64(6), '' FROM suppressions
            WHERE kind IN ('conversation', 'message', 'subject') AND ${ERASED_SINCE}`,
          runId,
          {},
          parameters,
        );
        for (const kind of ["conversation", "message"] as const) {
          await command(
            `INSERT INTO job_keys ${KEY_COLUMNS}
              SELECT {run:String}, '${KIND[kind]}', client_id, value, max(created_before), any(request_id)
              FROM suppressions WHERE kind = '${kind}' AND ${ERASED_SINCE} GROUP BY client_id, value`,
            runId,
            {},
            parameters,
          );
        }
        // Before the long look at what is stored: a run that is ended meanwhile is noticed by these numbers.
        const [row] = await select<{ clients: string; ids: string }>(
          `SELECT toString(uniqExactIf(client_id, kind = '${KIND.begun}' AND id = '${AGAIN}')) AS clients,
            toString(uniqExactIf((client_id, kind, id), kind IN ('${KIND.conversation}', '${KIND.message}'))) AS ids
            FROM job_keys WHERE ${RUN}`,
          parameters,
        );
        const suppressed = new Map<string, Pick<ErasureSubject, "createdBefore" | "requestId">>();
        const hashes = stream<[client: string, value: string, version: string, request: string]>(
          `SELECT client_id, value, toString(max(version)), any(request_id) FROM suppressions
            WHERE kind = 'subject' AND ${ERASED_SINCE} GROUP BY client_id, value`,
          parameters,
        );
        for await (const rows of hashes) {
          for (const [clientId, value, version, requestId] of rows)
            suppressed.set(`${clientId}\0${value}`, { createdBefore: Number(version), requestId });
        }
        let persons = 0;
        let keys: (ErasureSubject & { kind: string; id: string })[] = [];
        const keep = async (): Promise<void> => {
          persons += keys.length;
          await insertKeys(runId, keys);
          keys = [];
        };
        const named =
          suppressed.size === 0
            ? []
            : stream<[client: string, subject: string]>(STORED_SUBJECTS, parameters, {
                ...WITH_HIDDEN,
                max_bytes_before_external_group_by: MAX_GROUP_BYTES,
              });
        for await (const rows of named) {
          for (const [clientId, subject] of rows) {
            const found = suppressed.get(`${clientId}\0${hashOf(clientId, subject)}`);
            if (found !== undefined)
              keys.push({ ...found, clientId, subject, kind: KIND.subject, id: subject });
          }
          if (keys.length >= MAX_KEYS) await keep();
        }
        await keep();
        return { clients: Number(row?.clients), ids: Number(row?.ids), persons };
      }),
    settleFound: async (runId, signal) => {
      const keys = `SELECT client_id, id FROM job_keys WHERE ${RUN} AND kind = '${KIND.subject}'`;
      const endUsers = `kind = 'end_user' AND (client_id, concat('end_user_id:', value))`;
      const parameters = { run: runId };
      const found = await asked(async () => {
        for (const kind of ["conversation", "message"] as const) {
          await command(
            `INSERT INTO suppressions (client_id, kind, value, version, created_before, request_id)
              SELECT client_id, '${kind}', id, toUnixTimestamp64Micro(created_before), created_before, '${LOOKED_AT}'
              FROM ${limitsOf(KIND[kind])} WHERE (client_id, id) GLOBAL IN
                (SELECT client_id, value FROM suppressions WHERE kind = '${kind}'
                  AND (request_id = '${FOUND_LATER}' OR ${SLIPPED}))`,
            runId,
            { max_execution_time: SUPPRESSION_INSERT_SECONDS },
          );
        }
        const sql = `SELECT toString(count()) AS rows FROM suppressions WHERE ${endUsers} GLOBAL IN (${keys})`;
        return (await select<{ rows: string }>(sql, parameters))[0]?.rows;
      });
      if (found === "0") return;
      await deletion.erase(
        { table: "suppressions", condition: `${endUsers} IN (${keys})`, parameters },
        signal,
      );
    },
    eraseKeys: async (runId, signal) => {
      // Without the keys of erasures, which this looks at.
      const others = "NOT startsWith(kind, 'erase ')";
      const ofKinds = (...kinds: readonly string[]): string =>
        `(SELECT client_id, id FROM job_keys WHERE ${RUN} AND kind IN ('${kinds.join("', '")}'))`;
      const condition = `${others} AND ((client_id, id) IN ${ofKinds(KIND.conversation, KIND.message)}
        OR (client_id, concat('end_user_id:', id)) IN ${ofKinds(KIND.subject)})`;
      const parameters = { run: runId };
      const [row] = await asked(() =>
        select<{ rows: string }>(
          `SELECT toString(count()) AS rows FROM job_keys WHERE ${condition.replaceAll(" IN (SELECT", " GLOBAL IN (SELECT")}`,
          parameters,
        ),
      );
      if (row?.rows !== "0") await deletion.erase({ table: "job_keys", condition, parameters }, signal);
    },
    begunWith: (runId) =>
      asked(async () => {
        const sql = `SELECT toString(uniqExact(client_id, id)) AS rows FROM job_keys
          WHERE ${RUN} AND kind = '${KIND.begun}'`;
        return Number((await select<{ rows: string }>(sql, { run: runId }))[0]?.rows);
      }),
    collect: (runId) =>
      asked(async () => {
        const [persons] = await select<{ rows: string }>(
          `SELECT toString(count()) AS rows FROM job_keys WHERE ${RUN} AND kind = '${KIND.subject}'`,
          { run: runId },
        );
        for (const statements of persons?.rows === "0" ? BY_ID : [...BY_SUBJECT, ...BY_ID]) {
          await all(statements.map((sql) => command(sql, runId, WITH_HIDDEN)));
        }
        const kinds = LANDED.map(
          (kind) => `toUInt32(uniqExactIf((client_id, id), kind = '${recordKind(kind)}')) AS ${kind}`,
        );
        const [row] = await select<Record<(typeof LANDED)[number], number>>(
          `SELECT ${kinds.join(", ")} FROM job_keys WHERE ${RUN}`,
          { run: runId },
        );
        return {
          conversations: row?.conversation ?? 0,
          messages: row?.message ?? 0,
          endUsers: row?.end_user ?? 0,
        };
      }),
    suppressIds: (runId) =>
      asked(async () => {
        let count = 0;
        for (const kind of ["conversation", "message"] as const) {
          const sql = `SELECT toString(count()) AS rows FROM ${unsuppressed(kind)}`;
          const [row] = await select<{ rows: string }>(sql, { run: runId });
          const missing = Number(row?.rows);
          if (missing === 0) continue;
          count += missing;
          await command(
            `INSERT INTO suppressions (client_id, kind, value, version, created_before, request_id)
              SELECT f.client_id, '${kind}', f.id, toUnixTimestamp64Micro(f.created_before), f.created_before, f.request
              FROM ${unsuppressed(kind)}`,
            runId,
            { max_execution_time: SUPPRESSION_INSERT_SECONDS },
          );
        }
        return count;
      }),
    subjects: (runId) =>
      asked(async () => {
        type Row = { client_id: string; id: string; micros: string; request: string };
        const rows = await select<Row>(
          `SELECT client_id, id, toString(toUnixTimestamp64Micro(created_before)) AS micros, request
            FROM ${limitsOf(KIND.subject)}`,
          { run: runId },
        );
        return rows.map(({ client_id: clientId, id, micros, request: requestId }) => ({
          clientId,
          subject: id,
          createdBefore: Number(micros),
          requestId,
        }));
      }),
    remaining: (runId) =>
      asked(async () => {
        const counts = TABLES.map(
          async (table) => [table.table, await left(table, runId, WITH_HIDDEN)] as const,
        );
        return Object.fromEntries(await all(counts));
      }),
    erase: async (runId, tables, signal) => {
      for (const table of TABLES) {
        if (!tables.includes(table.table)) continue;
        signal.throwIfAborted();
        const condition = recordsOf(table).replaceAll("GLOBAL IN", "IN");
        const visible = await asked(() => left(table, runId, {}));
        if (visible > 0) await deletion.erase({ table: table.table, condition, parameters: { run: runId } });
        await asked(() => dropHidden(table, runId));
      }
    },
    runningInserts: () =>
      asked(async () => {
        const source =
          cluster === null
            ? "system.processes WHERE current_database = currentDatabase() AND"
            : `clusterAllReplicas('${cluster}', system.processes) WHERE`;
        const rows = await select<{ query_id: string }>(
          `SELECT query_id FROM ${source} query_kind = 'Insert'`,
        );
        return new Set(rows.map((row) => row.query_id));
      }),
    end: async (runPrefix, signal) => {
      const condition = `startsWith(kind, 'erase ')
        AND (startsWith(run_id, {prefix:String}) OR added_at < now() - INTERVAL 1 HOUR)`;
      const parameters = { prefix: runPrefix };
      const [row] = await asked(() =>
        select<{ rows: string }>(
          `SELECT toString(count()) AS rows FROM job_keys WHERE ${condition}`,
          parameters,
        ),
      );
      if (row?.rows !== "0") await deletion.erase({ table: "job_keys", condition, parameters }, signal);
    },
    close: async () => {
      await Promise.all([client.close(), deletion.close()]);
    },
  };
}
