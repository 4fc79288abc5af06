import type { Readable } from "node:stream";
import { text } from "node:stream/consumers";
import type { ClickHouseSettings } from "@clickhouse/client";
import { byDatedList, columnsOf, RECORD_KINDS, type RecordKind } from "@conversation-export/domain";
import { changeCandidatesOf, changeRows, changesInRange } from "../changes/changes-sql.ts";
import { typedColumns, UNREADABLE } from "../parquet/column-sql.ts";
import type { StatementName } from "../session/session.ts";
import { WarehouseError } from "../session/warehouse-error.ts";
import { rangeParameters } from "./find-end.ts";
import type { ListSteps, OpenStep, PagePosition } from "./page.ts";
import { listSettings, PARQUET_SETTINGS, type Parameters, TEXT_LINE_SETTINGS } from "./page-statements.ts";
import { passBytes, passLines } from "./page-stream.ts";
import type { ReadDeps } from "./read-deps.ts";
import { MESSAGES_OF_CONVERSATION } from "./sql/conversation-messages-sql.ts";
import { BY_CREATION } from "./sql/created-sql.ts";
import { END_USER_STEP, END_USERS_KIND, endUsersInRange } from "./sql/end-user-sql.ts";
import type { Candidates } from "./sql/identity-sql.ts";
import type { List } from "./sql/list.ts";
import type { RangedRows, ReadShape } from "./sql/page-sql.ts";
import { CONVERSATIONS_BY_UPDATE } from "./sql/updated-sql.ts";

export type StepFormat = {
  readonly name: "lines" | "parquet";
  readonly sql: (kind: RecordKind, records: string, withDeletions: boolean) => string;
  readonly settings: ClickHouseSettings;
  readonly pass: (answer: Readable) => Readable;
};

export const LINES: StepFormat = {
  name: "lines",
  sql: (_kind, records) => `${records} FORMAT CustomSeparated`,
  settings: TEXT_LINE_SETTINGS,
  pass: passLines,
};

const PARQUET_END = Buffer.from("PAR1");

export const PARQUET: StepFormat = {
  name: "parquet",
  sql: (kind, records, withDeletions) =>
    `${typedColumns(columnsOf(RECORD_KINDS[kind].public), records, withDeletions)} FORMAT Parquet`,
  settings: PARQUET_SETTINGS,
  pass: (answer) => passBytes(answer, PARQUET_END),
};

/** Sorted or joined records are held in memory. */
const SORTED_KEYS = 10_000;

export const createListSteps = (
  deps: ReadDeps & { readonly format: StepFormat; readonly stepKeys: number },
): ListSteps => {
  const { format, send, findEnd, askForConditions, stepKeys } = deps;
  const sortedKeys = Math.min(stepKeys, SORTED_KEYS);

  type Records = {
    readonly name: StatementName;
    readonly kind: RecordKind;
    readonly candidates: Candidates | null;
    readonly records: (shape: ReadShape) => string;
    readonly settings?: ClickHouseSettings | undefined;
    readonly withDeletions?: boolean;
  };
  const open = async (of: Records, parameters: Parameters, signal: AbortSignal): Promise<Readable> => {
    const { name, kind, candidates, records, withDeletions = false } = of;
    const shape = await askForConditions.conditions(candidates, parameters, signal);
    const sql = format.sql(kind, records(shape), withDeletions);
    const settings = { ...format.settings, ...listSettings(of, shape) };
    return send({ name, sql, parameters, settings }, format.pass, signal).catch((error: unknown) => {
      throw error instanceof WarehouseError && error.causeName === UNREADABLE
        ? new WarehouseError("warehouse_query_failed", "RECORD_UNREADABLE", false, error)
        : error;
    });
  };

  const ranges = (
    of: Records & { readonly rows: RangedRows; readonly keys: number },
    own: Parameters,
    start: PagePosition,
    to: number,
  ): OpenStep => {
    const from =
      (after: PagePosition): OpenStep =>
      async (signal) => {
        const name = `${format.name}.step_end` as const;
        const { end, isLast } = await findEnd(name, of.rows, own, { after, to }, of.keys, signal);
        const bytes = await open(of, { ...own, ...rangeParameters(after, end) }, signal);
        return { bytes, next: isLast ? null : from(end) };
      };
    return from(start);
  };

  type Window = {
    readonly clientId: string;
    readonly since: number;
    readonly to: number;
    readonly after?: PagePosition;
  };
  const window = (
    list: List,
    { clientId, since, to, after = { date: since, id: "" } }: Window,
    own: Parameters = {},
  ): OpenStep => {
    const keys = list.isSorted === true ? sortedKeys : stepKeys;
    const of = { ...list, name: `${format.name}.${list.name}`, kind: list.candidates.kind, keys } as const;
    return ranges(of, { ...own, client: clientId }, after, to);
  };

  return {
    ...byDatedList((kind) => (query: Window) => window(BY_CREATION[RECORD_KINDS[kind].list], query)),
    conversations: ({ filter, ...query }) =>
      window(filter === "created" ? BY_CREATION.conversations : CONVERSATIONS_BY_UPDATE, query),
    messages: ({ conversationId: conversation, ...query }) =>
      conversation === undefined
        ? window(BY_CREATION.messages, query)
        : window(MESSAGES_OF_CONVERSATION, query, { conversation }),
    endUsers: ({ clientId, from: first = "", externalId }) => {
      const selected = externalId !== undefined;
      const from =
        (start: string): OpenStep =>
        async (signal) => {
          const range = { client: clientId, from: start, external_id: externalId ?? "" };
          const end = {
            name: `${format.name}.end_users_end`,
            sql: `${END_USER_STEP} FORMAT TabSeparatedRaw`,
            parameters: { ...range, rows: stepKeys },
            settings: {},
          } as const;
          const answer = await send(end, text, signal);
          const bounded = answer !== "";
          // The least id after one with more versions than a step.
          const behind = answer === `${start}\n` ? `${start}\0` : answer.slice(0, -1);
          const of = {
            name: `${format.name}.end_users`,
            kind: END_USERS_KIND,
            candidates: null,
            records: ({ hasErased }: ReadShape) =>
              endUsersInRange("record", { selected, hasErased, bounded }),
          } as const;
          const bytes = await open(of, { ...range, behind }, signal);
          return { bytes, next: bounded ? from(behind) : null };
        };
      return from(first);
    },
    changes: ({ clientId, kind, after, stableUpTo }) => {
      const of = {
        name: `${format.name}.changes`,
        kind,
        candidates: changeCandidatesOf(kind),
        records: (shape: ReadShape) => changesInRange(kind, shape),
        withDeletions: true,
        rows: changeRows(kind),
        keys: sortedKeys,
      } as const;
      return ranges(of, { client: clientId, stableUpTo }, after, Math.max(after.date, stableUpTo));
    },
  };
};
