import { badTimestamp } from "./envelope.ts";
import { note } from "./noted-names.ts";
import { type Rejected, rejected } from "./outcome.ts";
import { type HandoffData, REASON_CODES } from "./schemas.ts";
import { formatTimestamp, isAcceptedInstant, type Micros, parseTimestamp } from "./timestamp.ts";

export type TargetKind = "handoff_id" | "id";

/** One handoff attempt of one export, ready for the warehouse. */
export type HandoffEntry = {
  /** `handoff_id`, or `id` when that is null (specification 2.1, handoffs rule 5). */
  readonly target: string;
  readonly targetKind: TargetKind;
  readonly dateCreated: Micros;
  readonly name: string | null;
  readonly outcomeStatus: string | null;
  readonly reasonCode: string | null;
  /** The public JSON of the entry. */
  readonly entry: string;
};

export type Handoffs = {
  readonly kind: "handoffs";
  /** One entry per target, ordered by date, then target. */
  readonly entries: readonly HandoffEntry[];
  /** Fields with a value outside the documented set, once for each time, up to 20. */
  readonly unusual: readonly string[];
};

const KNOWN_REASON_CODES: ReadonlySet<string> = new Set(REASON_CODES);
const KNOWN_OUTCOMES: ReadonlySet<string> = new Set(["succeeded", "failed"]);
const NONE: Handoffs = { kind: "handoffs", entries: [], unusual: [] };

function compareEntries(a: HandoffEntry, b: HandoffEntry): number {
  if (a.dateCreated !== b.dateCreated) return a.dateCreated - b.dateCreated;
  if (a.target !== b.target) return a.target < b.target ? -1 : 1;
  return a.targetKind < b.targetKind ? -1 : 1;
}

/**
 * Reduces the handoffs of one export to the latest attempt per target; of equal dates the later in the array
 * wins (specification 2.1, handoffs rules 1 and 5).
 */
export function mergeHandoffs(list: readonly HandoffData[] | null | undefined): Handoffs | Rejected {
  if (list === null || list === undefined || list.length === 0) return NONE;
  const latest = new Map<string, HandoffEntry>();
  const unusual: string[] = [];
  for (const [index, handoff] of list.entries()) {
    const targetKind: TargetKind = typeof handoff.handoff_id === "string" ? "handoff_id" : "id";
    const target = handoff.handoff_id ?? handoff.id;
    const dateCreated = parseTimestamp(handoff.date_created);
    if (dateCreated === undefined) {
      return badTimestamp(handoff.date_created, `handoffs.${index}.date_created`, "invalid_timestamp");
    }
    if (!isAcceptedInstant(dateCreated))
      return rejected("date_out_of_range", `handoffs.${index}.date_created`);
    const outcomeStatus = handoff.outcome_status ?? null;
    const reasonCode = handoff.reason_code ?? null;
    if (reasonCode !== null && !KNOWN_REASON_CODES.has(reasonCode)) note(unusual, "handoffs.reason_code");
    if (outcomeStatus !== null && !KNOWN_OUTCOMES.has(outcomeStatus))
      note(unusual, "handoffs.outcome_status");
    const key = `${targetKind}:${target}`;
    const seen = latest.get(key);
    if (seen !== undefined && seen.dateCreated > dateCreated) continue;
    const name = handoff.name ?? null;
    const entry = JSON.stringify({
      name,
      handoff_id: handoff.handoff_id ?? null,
      id: handoff.id,
      date_created: formatTimestamp(dateCreated),
      outcome_status: outcomeStatus,
      reason_code: reasonCode,
      reasoning: handoff.reasoning ?? null,
    });
    latest.set(key, { target, targetKind, dateCreated, name, outcomeStatus, reasonCode, entry });
  }
  const entries = [...latest.values()].sort(compareEntries);
  return { kind: "handoffs", entries, unusual };
}
