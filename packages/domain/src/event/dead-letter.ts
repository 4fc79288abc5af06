import { arrivalIn, instantOf, numberOf } from "./bus-position.ts";
import { type BusHeader, type BusHeaders, headerText } from "./headers.ts";
import type { RejectionReason } from "./outcome.ts";
import type { BusPosition } from "./version.ts";

const SUFFIX = ".dead-letter";
const UNREADABLE: RejectionReason = "unreadable_batch";

export const deadLetterTopic = (topic: string): string => `${topic}${SUFFIX}`;

/** Instants in ms; null: unknown. */
export type DeadLetterFacts = {
  readonly reason: string;
  /** Names fields, never their values. */
  readonly detail: string;
  readonly topic: string;
  /** Of the first arrival. */
  readonly arrival: BusPosition;
  readonly arrivedAt: number | null;
  /** Of an unreadable batch; null: of one message. */
  readonly lastOffset: number | null;
  readonly rejectedAt: number | null;
  /** Before this rejection. */
  readonly replays: number;
  readonly leftOut: boolean;
};

const textOf = (header: BusHeader): string | undefined => headerText(header) ?? undefined;

const MAX_REPLAYS = 0xffff;

/** Of several headers the highest count. */
export const replaysOf = ({ "dl-replays": header }: BusHeaders): number => {
  const values = Array.isArray(header) ? (header as readonly BusHeader[]) : [header];
  return Math.max(0, ...values.map((one) => Math.min(numberOf(one, Infinity) ?? 0, MAX_REPLAYS)));
};

export const deadLetterOf = (headers: BusHeaders): DeadLetterFacts | undefined => {
  const reason = textOf(headers["dl-reason"]);
  const topic = textOf(headers["dl-topic"]);
  const arrival = arrivalIn(headers);
  const replays =
    headerText(headers["dl-replays"]) === null ? 0 : numberOf(headers["dl-replays"], MAX_REPLAYS);
  if (reason === undefined || topic === undefined) return undefined;
  if (arrival === undefined || replays === undefined) return undefined;
  return {
    reason,
    detail: textOf(headers["dl-detail"]) ?? "",
    topic,
    arrival,
    arrivedAt: instantOf(headers["dl-time"]),
    // Publishers may set the header too.
    lastOffset: reason === UNREADABLE ? (numberOf(headers["dl-last-offset"], 2 ** 48 - 1) ?? null) : null,
    rejectedAt: instantOf(headers["dl-rejected-at"]),
    replays,
    leftOut: textOf(headers["dl-payload"]) === "left out",
  };
};

export const replayHeaders = <H extends BusHeaders>(
  headers: H,
  { replays }: Pick<DeadLetterFacts, "replays">,
): H & { "dl-replays": string } => ({ ...headers, "dl-replays": String(replays + 1) });
