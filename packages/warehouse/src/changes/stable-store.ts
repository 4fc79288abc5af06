import { formatTimestampZ, LIST_NAMES, type ListName, type Micros } from "@conversation-export/domain";
import type { Watermarks } from "../pages/watermark-store.ts";
import type { Session } from "../session/session.ts";

export type Stable = {
  /** All that is ever stored before it is readable; 0: unknown. */
  readonly until: Micros;
  /** Events on the bus before it were stored before `until`. */
  readonly watermarks: Watermarks;
};

/** @throws WarehouseError */
export type StableReader = { load(): Promise<Stable> };

/** @throws WarehouseError from every method */
export type StableStore = StableReader & {
  /** `at`: ClickHouse's clock. */
  watermarks(): Promise<{ readonly at: Micros; readonly watermarks: Watermarks }>;
  /** Lower instants have no effect. */
  save(stable: Stable): Promise<void>;
};

const UNTIL = "changes";
const nameOf = (list: ListName): string => `changes of ${list}`;

const TIMEOUT_MS = 10_000;

const instants = async (
  session: Session,
): Promise<{ readonly at: Micros; readonly known: ReadonlyMap<string, Micros> }> => {
  const rows = await session.rows<{ list: string; micros: string; at: string }>(
    "changes.load",
    `SELECT list, toString(max(version)) AS micros, toString(toUnixTimestamp64Micro(now64(6))) AS at
      FROM watermarks GROUP BY list`,
  );
  return {
    at: Number(rows[0]?.at ?? 0),
    known: new Map(rows.map(({ list, micros }) => [list, Number(micros)])),
  };
};

const watermarksOf = (known: ReadonlyMap<string, Micros>, name: (list: ListName) => string): Watermarks =>
  Object.fromEntries(
    LIST_NAMES.flatMap((list) => {
      const instant = known.get(name(list));
      return instant === undefined ? [] : [[list, instant]];
    }),
  );

export const createStableStore = (deps: { readonly session: Session }): StableStore => {
  const session = deps.session.with({ timeoutMs: TIMEOUT_MS });
  return {
    load: async () => {
      const { known } = await instants(session);
      return { until: known.get(UNTIL) ?? 0, watermarks: watermarksOf(known, nameOf) };
    },
    watermarks: async () => {
      const { at, known } = await instants(session);
      return { at, watermarks: watermarksOf(known, (list) => list) };
    },
    save: async ({ until, watermarks }) => {
      const rows = [
        [UNTIL, until] as const,
        ...Object.entries(watermarks).map(([list, instant]) => [nameOf(list as ListName), instant] as const),
      ].map(([list, instant]) => ({ list, version: instant, instant: formatTimestampZ(instant) }));
      await session.insert("changes.save", { table: "watermarks", rows }, { settings: { async_insert: 1 } });
    },
  };
};
