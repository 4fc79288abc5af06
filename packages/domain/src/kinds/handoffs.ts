import { z } from "zod";
import { escapeLineEnds } from "../json/json-text.ts";
import { note } from "../record/noted-names.ts";
import { identifier, identifierOrEmpty, instant, text } from "./field-schemas.ts";
import { readInstant } from "../event/read-instant.ts";
import { formatTimestamp, type Micros } from "../event/timestamp.ts";

const REASON_CODES = [
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

export const handoffSchema = z.object({
  name: text.describe("Name of the handoff"),
  handoff_id: identifierOrEmpty
    .nullish()
    .describe("ID of the handoff: what distinguishes attempts; it need not match a configured one"),
  id: identifier.describe("ID of the attempt; it stays the same in later exports"),
  date_created: instant.describe("Time the handoff was invoked"),
  outcome_status: text.describe("How the attempt ended, such as succeeded or failed"),
  reason_code: text.describe(`What led to the handoff: ${REASON_CODES.join(", ")} or null`),
  reasoning: text.describe("What speaks for the handoff, redacted as the client wishes"),
});

type HandoffData = z.infer<typeof handoffSchema>;

export type TargetKind = "handoff_id" | "id";

export type HandoffEntry = {
  /** `handoff_id`, else `id` (specification 2.1, handoffs rule 5); with both, `id` has a reference. */
  readonly target: string;
  readonly targetKind: TargetKind;
  readonly dateCreated: Micros;
  readonly name: string | null;
  readonly outcomeStatus: string | null;
  readonly reasonCode: string | null;
  readonly entry: string;
};

export type Handoffs = {
  /** The latest per target, with references, by date, then target. */
  readonly entries: readonly HandoffEntry[];
  /** Undocumented values, by field, at most 20. */
  readonly nonstandard: readonly string[];
};

const KNOWN_REASON_CODES: ReadonlySet<string> = new Set(REASON_CODES);
const KNOWN_OUTCOMES: ReadonlySet<string> = new Set(["succeeded", "failed"]);
const NONE: Handoffs = { entries: [], nonstandard: [] };

function compareEntries(a: HandoffEntry, b: HandoffEntry): number {
  if (a.dateCreated !== b.dateCreated) return a.dateCreated - b.dateCreated;
  if (a.target !== b.target) return a.target < b.target ? -1 : 1;
  return a.targetKind < b.targetKind ? -1 : 1;
}

/** Replaces an entry that had no `handoff_id` yet. */
const referenceTo = (id: string, dateCreated: Micros): HandoffEntry => ({
  target: id,
  targetKind: "id",
  dateCreated,
  name: null,
  outcomeStatus: null,
  reasonCode: null,
  entry: "",
});

/** Of equal dates the later wins (specification 2.1, handoffs rules 1 and 5). */
export function mergeHandoffs(list: readonly HandoffData[] | null | undefined): Handoffs | null {
  if (list === null || list === undefined || list.length === 0) return NONE;
  const latest = new Map<string, HandoffEntry>();
  const take = (entry: HandoffEntry): void => {
    const key = `${entry.targetKind}:${entry.target}`;
    const seen = latest.get(key);
    if (seen === undefined || seen.dateCreated <= entry.dateCreated) latest.set(key, entry);
  };
  const nonstandard: string[] = [];
  for (const handoff of list) {
    const handoffId = handoff.handoff_id === "" ? null : (handoff.handoff_id ?? null);
    const targetKind: TargetKind = handoffId === null ? "id" : "handoff_id";
    const target = handoffId ?? handoff.id;
    const dateCreated = readInstant(handoff.date_created);
    if (dateCreated === undefined) return null;
    const outcomeStatus = handoff.outcome_status ?? null;
    const reasonCode = handoff.reason_code ?? null;
    if (reasonCode !== null && !KNOWN_REASON_CODES.has(reasonCode)) note(nonstandard, "handoffs.reason_code");
    if (outcomeStatus !== null && !KNOWN_OUTCOMES.has(outcomeStatus))
      note(nonstandard, "handoffs.outcome_status");
    const name = handoff.name ?? null;
    const json = JSON.stringify({
      name,
      handoff_id: handoffId,
      id: handoff.id,
      date_created: formatTimestamp(dateCreated),
      outcome_status: outcomeStatus,
      reason_code: reasonCode,
      reasoning: handoff.reasoning ?? null,
    });
    const entry = escapeLineEnds(json);
    take({ target, targetKind, dateCreated, name, outcomeStatus, reasonCode, entry });
    if (targetKind === "handoff_id") take(referenceTo(handoff.id, dateCreated));
  }
  const entries = [...latest.values()].sort(compareEntries);
  return { entries, nonstandard };
}
