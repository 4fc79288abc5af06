import { runSql } from "../system/warehouse-sql.ts";

/** Rows with an instant of storing, each with a name. */
const STORED = [
  ["changes", "kind, id, date_created, deleted", "stored_at"],
  ["conversations", "conversation_id, date_created, version", "uploaded_at"],
  ["handoffs", "conversation_id, target, version", "uploaded_at"],
  ["messages", "message_id, date_created, version", "uploaded_at"],
  ["end_users", "end_user_id, version", "uploaded_at"],
] as const;

/** Notes what stands behind the stable instant of changes, where nothing may ever be added. */
export type StableLedger = {
  /** Notes what became stable since the last call. */
  note(): Promise<void>;
  /** Rows that have appeared behind a stable instant after it was stored. */
  late(): Promise<readonly string[]>;
  /** The stable instant, µs. */
  stable(): Promise<number>;
};

/** @param url of a user who may read all tables */
export const createStableLedger = (url: string): StableLedger => {
  const noted = new Set<string>();
  let upTo = 0;

  const stable = async (): Promise<number> =>
    Number(await runSql(url, "SELECT max(version) FROM watermarks WHERE list = 'changes'"));

  const rows = async (from: number, to: number): Promise<string[]> => {
    const selects = STORED.map(
      ([table, columns, date]) =>
        `SELECT concat('${table} ', client_id, ' ', toString((${columns}, ${date}))) AS row FROM ${table}
          WHERE ${date} >= fromUnixTimestamp64Micro(${from}, 'UTC')
            AND ${date} < fromUnixTimestamp64Micro(${to}, 'UTC')`,
    );
    const text = await runSql(url, `${selects.join(" UNION DISTINCT ")} FORMAT TSVRaw`);
    return text.split("\n").filter(Boolean);
  };

  return {
    stable,
    note: async () => {
      const to = await stable();
      if (to <= upTo) return;
      for (const row of await rows(upTo, to)) noted.add(row);
      upTo = to;
    },
    late: async () => (await rows(0, upTo)).filter((row) => !noted.has(row)),
  };
};
