import { runSql } from "../system/warehouse-sql.ts";

const STORED = [
  ["changes", "kind, id, date_created, deleted", "stored_at"],
  ["conversations", "conversation_id, date_created, version", "uploaded_at"],
  ["handoffs", "conversation_id, target, version", "uploaded_at"],
  ["messages", "message_id, date_created, version", "uploaded_at"],
  ["end_users", "end_user_id, version", "uploaded_at"],
] as const;

/** Nothing may ever be added before the stable instant. */
export type StableLedger = {
  note(): Promise<void>;
  /** Rows that appeared too late. */
  late(): Promise<readonly string[]>;
  /** In µs. */
  stable(): Promise<number>;
};

/** The user must read all tables. */
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
