import { type Micros, MINUTE, SECOND, writeInstant } from "./values/instants.ts";
import { json, type JsonText, type Member, object } from "./values/json-text.ts";
import type { SampleOptions } from "./options.ts";
import type { ConversationPlan } from "./plan.ts";
import { createRandom, type Random } from "./values/random.ts";
import { unknownMembers } from "./values/free-form.ts";

export const REASON_CODES = [
  "tool_failed",
  "end_user_requested",
  "out_of_scope",
  "tool_unavailable",
  "knowledge_unavailable",
  "issue_unresolved",
  "handoff_configured",
  "other",
  "system_failed",
  "unclassified",
] as const;

const UNKNOWN_REASON = "queue_closed";
/** Before it most handoffs lack a reason (specification 2.1). */
const REASONS_SINCE: Micros = Date.parse("2026-10-07T00:00:00Z") * 1_000;
const TARGETS = ["Billing team", "Level 2", "Zendesk", "Phone callback", "Store São Paulo"];

type Attempt = {
  readonly name: string | null;
  readonly handoffId: string | null;
  readonly id: string;
  readonly at: Micros;
  readonly isSlow: boolean;
  readonly outcome: string | null;
  readonly reason: string | null;
  readonly reasoning: string | null;
};

function drawReason(random: Random, at: Micros): string | null {
  if (at < REASONS_SINCE && random.chance(0.8)) return null;
  if (random.chance(0.1)) return null;
  return random.chance(0.04) ? UNKNOWN_REASON : random.pick(REASON_CODES);
}

function drawHandoffId(random: Random, client: string, attempts: readonly Attempt[]): string | null {
  const earlier = attempts.at(-1);
  if (earlier !== undefined && random.chance(0.35)) return earlier.handoffId;
  const kind = random.next();
  if (kind < 0.15) return null;
  if (kind < 0.3) return `generated_${random.hex(12)}`;
  return createRandom(client, "handoff", random.int(TARGETS.length)).hex(24);
}

function drawId(
  random: Random,
  handoffId: string | null,
  attempts: readonly Attempt[],
  nonstandardShare: number,
): string {
  const earlier = attempts.at(-1);
  if (earlier !== undefined && random.chance(nonstandardShare)) {
    // Another target with the same text, or the same attempt later.
    return handoffId === null && earlier.handoffId !== null ? earlier.handoffId : earlier.id;
  }
  return random.hex(24);
}

function planAttempts(options: SampleOptions, plan: ConversationPlan): Attempt[] {
  const random = createRandom(options.seed, "handoffs", plan.index);
  const attempts: Attempt[] = [];
  if (!random.chance(0.45)) return attempts;
  const count = 1 + random.int(random.chance(0.3) ? 5 : 2);
  let at = plan.createdAt + SECOND;
  for (let ordinal = 0; ordinal < count; ordinal += 1) {
    if (ordinal > 0 && !random.chance(0.12)) at += 1 + random.int(9 * MINUTE);
    const handoffId = drawHandoffId(random, plan.client, attempts);
    attempts.push({
      name: random.chance(0.1) ? null : random.pick(TARGETS),
      handoffId,
      id: drawId(random, handoffId, attempts, options.nonstandardShare),
      at,
      isSlow: random.chance(0.35),
      outcome: random.pick(["succeeded", "succeeded", "failed", "abandoned", null]),
      reason: drawReason(random, at),
      reasoning: random.chance(0.3)
        ? null
        : `The chatter asked for a person after ${1 + random.int(4)} answers. [redacted]`,
    });
  }
  return attempts;
}

function writeEntry(
  random: Random,
  attempt: Attempt,
  isSettled: boolean,
  at: Micros,
  nonstandardShare: number,
): JsonText {
  const members: Member[] = [
    ["name", json(attempt.name)],
    ["handoff_id", json(attempt.handoffId)],
    ["id", json(attempt.id)],
    ["date_created", json(writeInstant(random, at))],
    ["outcome_status", json(isSettled ? attempt.outcome : null)],
    ["reason_code", json(attempt.reason)],
    ["reasoning", json(attempt.reasoning)],
  ];
  const isSparse = random.chance(nonstandardShare / 2);
  const kept = isSparse ? members.filter(([, text]) => text !== "null") : members;
  return object([...kept, ...unknownMembers(random, nonstandardShare / 4, "queue_position")]);
}

/** As the platform documents its exports. */
function latestPerTarget(attempts: readonly Attempt[]): Attempt[] {
  const latest = new Map<string, Attempt>();
  for (const attempt of attempts) {
    const key = json([attempt.handoffId, attempt.handoffId === null ? attempt.id : ""]);
    latest.delete(key);
    latest.set(key, attempt);
  }
  return [...latest.values()];
}

export function writeHandoffs(options: SampleOptions, plan: ConversationPlan, ordinal: number): JsonText[] {
  const random = createRandom(options.seed, "handoffs", plan.index, ordinal);
  const all = planAttempts(options, plan);
  const isLast = ordinal === plan.exports.length - 1;
  const visible = isLast ? all.length : Math.min(all.length, 1 + ordinal);
  const attempts = all.slice(0, visible);
  const exported = random.chance(0.12) ? attempts : latestPerTarget(attempts);
  const isFewer = ordinal > 0 && random.chance(0.2);
  const kept = isFewer ? exported.filter(() => random.chance(0.5)) : exported;
  const entries = kept.map((attempt) => {
    const isEarlier = ordinal > 0 && random.chance(0.05);
    const at = isEarlier ? attempt.at - 1 - random.int(SECOND) : attempt.at;
    return writeEntry(random, attempt, ordinal > 0 || !attempt.isSlow, at, options.nonstandardShare);
  });
  const repeated = kept[0];
  if (repeated !== undefined && random.chance(options.nonstandardShare / 4)) {
    entries.push(writeEntry(random, { ...repeated, outcome: "failed" }, true, repeated.at, 0));
  }
  return random.chance(0.15) ? entries.reverse() : entries;
}
