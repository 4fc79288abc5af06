import type { SampleOptions } from "../sample/index.ts";

const DAY_MS = 86_400_000;
/** Seven days and five of later exports, all in the past. */
const DAYS_BACK = 13;
export const LATE_SHARE = 0.03;

const bySize = (env: Readonly<Record<string, string | undefined>>, whole: number): number =>
  env["SMALL"] === "1" ? whole / 10 : whole;

export const CLIENTS = ["acme", "globex", "initech"] as const;

export const demoSample = (
  env: Readonly<Record<string, string | undefined>>,
  now: Date,
): Partial<SampleOptions> & { readonly start: string; readonly seed: string } => ({
  seed: env["SEED"] ?? "demo",
  conversations: Number(env["CONVERSATIONS"] ?? bySize(env, 20_000)),
  // More than 100,000 messages, since lengths differ.
  messagesPerConversation: 5.3,
  clients: CLIENTS,
  start: `${new Date(now.getTime() - DAYS_BACK * DAY_MS).toISOString().slice(0, 10)}T00:00:00Z`,
  days: 7,
  exportsPerConversation: 1.6,
  endUsers: bySize(env, 3_000),
  lateShare: LATE_SHARE,
  duplicateShare: 0.02,
  poisonShare: 0.005,
});
