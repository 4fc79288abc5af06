import type { Client } from "@conversation-export/client";
import type { System } from "./system.ts";
import { until } from "./until.ts";

const LISTS = ["conversations", "messages", "end_users"] as const;

export const changesStable = async (system: System, client: Client, deadlineMs: number): Promise<void> => {
  await system.caughtUp(deadlineMs);
  const now = Date.now();
  for (const list of LISTS) {
    await until(`the changes of ${list} are stable`, deadlineMs, async () => {
      const page = await client.changes(list, { storedSince: "2100-01-01T00:00:00Z" }).next();
      return page.done !== true && Date.parse(page.value.watermark ?? "") > now;
    });
  }
};
