import type { AddressInfo } from "node:net";
import { Readable } from "node:stream";
import { text } from "node:stream/consumers";
import { createKey, createLogger, createMetrics, parseKey } from "@conversation-export/runtime";
import type { RecordKind } from "@conversation-export/domain";
import type {
  ApiClient,
  ChangeQuery,
  ListSteps,
  MessagePageQuery,
  OpenStep,
  Page,
  PageEnd,
  PageQuery,
  Reader,
} from "@conversation-export/warehouse";
import type { FastifyInstance } from "fastify";
import { onTestFinished } from "vitest";
import { createAuthThrottle } from "../admission/auth-throttle.ts";
import { createKnownKeys } from "../admission/known-keys.ts";
import { createExportApp, type ExportAppDeps } from "../export-app.ts";
import { createExportMetrics } from "../export-metrics.ts";
import { createSlots } from "../admission/slots.ts";
import { fileOf } from "../formats/file.fixture.ts";

export type StoredRecord = {
  readonly clientId: string;
  readonly created: number;
  readonly updated: number;
  readonly id: string;
  readonly conversationId: string;
};

export type StoredEndUser = {
  readonly clientId: string;
  readonly id: string;
  readonly externalIds?: readonly string[];
};

export type StoredChange = {
  readonly clientId: string;
  readonly kind: RecordKind;
  /** µs since the epoch. */
  readonly storedAt: number;
  readonly id: string;
  readonly deleted?: true;
};

export const KEY = createKey().key;
export const AUTHORIZED = { authorization: `Bearer ${KEY}` };

export const WATERMARK = "2024-03-02T00:00:00.000000Z";

export const CLIENT: ApiClient = {
  clientId: "acme",
  keyId: "key-1",
  scopes: ["export"],
  clientDeleted: false,
  linkBounds: null,
  rateLimits: {},
};

const unused = (): Promise<never> => Promise.reject(new Error("not in these tests"));

export const createListReader = (options: {
  records?: readonly StoredRecord[];
  endUsers?: readonly StoredEndUser[];
  changes?: readonly StoredChange[];
  clients?: Readonly<Record<string, ApiClient>>;
  /** To hold all records of one instant. */
  extension?: number;
}) => {
  const { records = [], extension = 10_000 } = options;
  const clients = new Map(
    Object.entries(options.clients ?? { [KEY]: CLIENT }).map(([key, client]) => [
      parseKey(key)?.hash,
      client,
    ]),
  );
  const lineQueries: (Parameters<ListSteps["messages"]>[0] & { filter: string })[] = [];
  const queries: (PageQuery & { conversationId?: string })[] = [];
  const lookups: string[] = [];
  const changeQueries: ChangeQuery[] = [];
  const parquetQueries: object[] = [];

  const behind = (
    query: Pick<MessagePageQuery, "clientId" | "since" | "to" | "after" | "conversationId">,
    dateOf: (record: StoredRecord) => number,
  ): StoredRecord[] => {
    const { after } = query;
    return records
      .filter(
        (row) =>
          row.clientId === query.clientId &&
          dateOf(row) >= query.since &&
          dateOf(row) < query.to &&
          (query.conversationId === undefined || row.conversationId === query.conversationId) &&
          (after === undefined ||
            dateOf(row) > after.date ||
            (dateOf(row) === after.date && row.id > after.id)),
      )
      .sort((a, b) => dateOf(a) - dateOf(b) || (a.id < b.id ? -1 : 1));
  };

  const page = (query: MessagePageQuery, dateOf: (record: StoredRecord) => number): Promise<Page> => {
    queries.push(query);
    const rows = behind(query, dateOf);
    const dateAt = (index: number): number | undefined => {
      const row = rows[index];
      return row && dateOf(row);
    };
    let size = Math.min(query.pageSize, rows.length);
    if (query.wholeTies && size < rows.length && dateAt(size - 1) === dateAt(size)) {
      const tie = rows.findIndex((row) => dateOf(row) === dateAt(size));
      if (tie > 0) size = tie;
      else {
        const end = rows.findIndex((row) => dateOf(row) !== dateAt(0));
        size = Math.min(end === -1 ? rows.length : end, query.pageSize + extension);
      }
    }
    const last = rows[size - 1];
    const isWhole = query.wholeTies && dateAt(size) !== dateAt(size - 1);
    const next = last && (isWhole ? { date: dateOf(last) + 1, id: "" } : { date: dateOf(last), id: last.id });
    const more = size < rows.length && next !== undefined;
    const end = { rows: size, next: more ? next : null, pace: 1 };
    return Promise.resolve({
      end: () => end,
      records: Readable.from(
        rows
          .slice(0, size)
          .map((row, index) =>
            Buffer.from((index > 0 ? (query.separator ?? ",") : "") + JSON.stringify(row)),
          ),
      ),
    });
  };

  const endUsers: Reader["endUsers"] = ({ clientId, from = "", limit, externalId }) => {
    const rows = (options.endUsers ?? [])
      .filter((row) => row.clientId === clientId && row.id >= from)
      .filter((row) => externalId === undefined || row.externalIds?.includes(externalId) === true)
      .sort((a, b) => (a.id < b.id ? -1 : 1));
    const shown = rows.slice(0, limit).map(({ id }) => JSON.stringify({ end_user_id: id }));
    const end = { rows: shown.length, next: rows[limit]?.id ?? null };
    return Promise.resolve({
      end: () => end,
      records: Readable.from([Buffer.from(shown.join(","))], { objectMode: false }),
    });
  };

  const changes: Reader["changes"] = (query) => {
    changeQueries.push(query);
    const { clientId, kind, after, stableUpTo, pageSize } = query;
    const rows = (options.changes ?? [])
      .filter((row) => row.clientId === clientId && row.kind === kind && row.storedAt < stableUpTo)
      .filter(({ storedAt, id }) => storedAt > after.date || (storedAt === after.date && id > after.id))
      .sort((a, b) => a.storedAt - b.storedAt || (a.id < b.id ? -1 : 1));
    const shown = rows.slice(0, pageSize);
    const last = shown.at(-1);
    const isLast = shown.length === rows.length;
    const place =
      isLast || last === undefined ? { date: stableUpTo, id: "" } : { date: last.storedAt, id: last.id };
    const end = { rows: shown.length, next: after.date >= stableUpTo ? after : place, isLast };
    return Promise.resolve({
      end: () => end,
      records: Readable.from(
        shown.map(({ id, deleted }, index) =>
          Buffer.from((index > 0 ? "," : "") + JSON.stringify({ _id: id, deleted })),
        ),
      ),
    });
  };

  const changeLines: ListSteps["changes"] = (query) => async () => {
    const { records, end } = await changes({ ...query, pageSize: 2 });
    const lines = (await text(records)).replaceAll("},{", "}\n{");
    const { next, isLast } = end();
    return {
      bytes: Readable.from(lines === "" ? [] : [Buffer.from(`${lines}\n`)]),
      next: isLast ? null : changeLines({ ...query, after: next }),
    };
  };

  const linesOf = (query: Parameters<ListSteps["messages"]>[0], filter: "created" | "updated"): OpenStep => {
    lineQueries.push({ filter, ...query });
    const rows = behind(query, (row) => row[filter]);
    const from =
      (start: number): OpenStep =>
      () => {
        const lines = rows.slice(start, start + 1_000).map((row) => Buffer.from(`${JSON.stringify(row)}\n`));
        const end = start + 1_000;
        return Promise.resolve({ bytes: Readable.from(lines), next: end < rows.length ? from(end) : null });
      };
    return from(0);
  };

  const parquetOf =
    (list: keyof ListSteps) =>
    (query: object): OpenStep => {
      parquetQueries.push({ list, ...query });
      const file = (rows: number): Readable => Readable.from([fileOf([{ rows, columns: [list] }])]);
      return () =>
        Promise.resolve({
          bytes: file(2),
          next: () => Promise.resolve({ bytes: file(1), next: null }),
        });
    };

  const reader: Reader = {
    parquet: {
      conversations: parquetOf("conversations"),
      messages: parquetOf("messages"),
      endUsers: parquetOf("endUsers"),
      changes: parquetOf("changes"),
    },
    lines: {
      conversations: ({ filter, ...query }) => linesOf(query, filter),
      messages: (query) => linesOf(query, "created"),
      endUsers: () => () => Promise.reject(new Error("no operation asks for end users as lines")),
      changes: changeLines,
    },
    conversationsByCreation: (query) => page(query, (row) => row.created),
    conversationsByUpdate: (query) => page(query, (row) => row.updated),
    messagesByCreation: (query) => page(query, (row) => row.created),
    endUsers,
    changes,
    findKey: (hash) => {
      lookups.push(hash);
      return Promise.resolve(clients.get(hash) ?? null);
    },
    validKeys: () => Promise.resolve([]),
    ping: () => Promise.resolve(),
  };
  return { reader, queries, lineQueries, lookups, changeQueries, parquetQueries };
};

export type TestApp = {
  readonly app: FastifyInstance;
  readonly logLines: Record<string, unknown>[];
  metricsText(): Promise<string>;
};

/** Closed when the test has finished. */
export const listen = async (app: FastifyInstance): Promise<number> => {
  await app.listen({ host: "127.0.0.1", port: 0 });
  onTestFinished(async () => {
    app.server.closeAllConnections();
    await app.close();
  });
  return (app.server.address() as AddressInfo).port;
};

const unbounded = { begin: () => Promise.resolve(() => undefined) };

export const createTestApp = (reader: Reader, overrides: Partial<ExportAppDeps> = {}): TestApp => {
  const logLines: Record<string, unknown>[] = [];
  const log = createLogger({
    service: "export-api",
    level: "debug",
    destination: { write: (line) => logLines.push(JSON.parse(line) as Record<string, unknown>) },
  });
  const metrics = createMetrics({ service: "export-api" });
  const clock = () => performance.now();
  const wide = { perProcess: 16, perClient: 16, maxWaiting: 16, maxWaitMs: 1_000 };
  const slots = { page: createSlots(wide), body: createSlots(wide) };
  const app = createExportApp({
    reader,
    rateLimit: { admit: () => Promise.resolve() },
    authThrottle: createAuthThrottle({ windows: [] }),
    knownKeys: createKnownKeys({ load: unused, log }),
    usedKeys: { use: () => undefined },
    slots,
    previousCursorSecret: undefined,
    publicBaseUrl: undefined,
    bounds: { pages: unbounded, streams: unbounded },
    stable: () => Promise.resolve({ until: Date.now() * 1000, watermark: WATERMARK }),
    watermark: () => Promise.resolve(WATERMARK),
    log,
    metrics: createExportMetrics(metrics, slots.page),
    clock,
    now: Date.now,
    compliance: {
      requests: {
        find: () => Promise.resolve(null),
        list: () =>
          Promise.resolve(
            [1, 0].map((number) => ({
              requestId: `${"0".repeat(32)}-${number}`,
              type: "ERASURE" as const,
              status: "completed" as const,
              receivedAt: number,
              updatedAt: number,
            })),
          ),
        open: unused,
        setStatus: unused,
      },
      deadlineMs: 72 * 3_600_000,
      jobs: { add: unused, checkServer: unused },
      caps: { open: 1, identifiersPerDay: 1 },
      now: Date.now,
      onCapped: () => undefined,
    },
    campaigns: {
      campaigns: { find: () => Promise.resolve(null) },
      idempotency: { claim: unused, complete: unused, release: unused, abandon: unused },
      publisher: { publish: unused },
    },
    trustedProxies: ["loopback"],
    maxEventLoopDelayMs: 0,
    cursorSecret: "a secret of the tests, 32 characters long",
    linkBounds: "same",
    legacy: { deprecation: undefined, sunset: undefined },
    keyCacheMs: 10_000,
    idleMs: 60_000,
    sweep: () => {},
    maxConnections: 100,
    hstsSubDomains: false,
    reference: true,
    ...overrides,
  });
  return { app, logLines, metricsText: () => metrics.text() };
};

export const pageOf = (records: Readable, next: PageEnd["next"] = null): Page => ({
  end: () => ({ rows: 1, next }),
  records,
});
