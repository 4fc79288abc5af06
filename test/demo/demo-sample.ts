import type { SampleOptions } from "../sample/index.ts";

const DAY_MS = 86_400_000;
/** Records of seven days and up to five days of later exports, all in the past. */
const DAYS_BACK = 13;
/** Share of late events, and of exports overtaken by a newer one. */
export const LATE_SHARE = 0.03;

const bySize = (env: Readonly<Record<string, string | undefined>>, whole: number): number =>
  env["SMALL"] === "1" ? whole / 10 : whole;

export const CLIENTS = ["acme", "globex", "initech"] as const;

/** The sample of the demonstration, the same for one seed and one day. SMALL=1: a tenth of it. */
export const demoSample = (
  env: Readonly<Record<string, string | undefined>>,
  now: Date,
): Partial<SampleOptions> & { readonly start: string; readonly seed: string } => ({
  seed: env["SEED"] ?? "demo",
  conversations: Number(env["CONVERSATIONS"] ?? bySize(env, 20_000)),
  // Conversations differ in length: a little more than five gives more than 100,000 messages.
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
