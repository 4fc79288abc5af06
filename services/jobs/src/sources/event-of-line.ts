import { isUtf8 } from "node:buffer";
import { EVENT_TYPES, type EventType } from "@conversation-export/domain";
import type { SourceEvent, SourceProblem } from "./event-source.ts";
import type { Line } from "./line-cutter.ts";

/** `topic` replaces a topic of the bus. */
export type LineContext = {
  readonly topic: string;
  readonly location: string;
  readonly now: number;
};

const WHOLE_NUMBER = /^\d{1,15}$/;

/** Integers of CloudEvents end at 2^31, so texts count too. */
function wholeNumber(value: unknown, limit: number): string | undefined {
  const text = typeof value === "number" ? String(value) : value;
  return typeof text === "string" && WHOLE_NUMBER.test(text) && Number(text) < limit ? text : undefined;
}

const isEventType = (type: unknown): type is EventType => EVENT_TYPES.some((known) => known === type);

function parse(bytes: Buffer): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(bytes.toString("utf8"));
    return typeof value === "object" && value !== null && !Array.isArray(value)
      ? (value as Record<string, unknown>)
      : undefined;
  } catch {
    return undefined;
  }
}

/** Without `partition` and `offset`: partition 0 and the line number. */
export function eventOfLine(line: Line, context: LineContext): SourceEvent | SourceProblem {
  const problem = (reason: string, detail: string): SourceProblem => ({
    place: `${context.location}:${line.number}`,
    reason,
    detail,
  });
  if (line.bytes === null) return problem("line_too_long", "the line is longer than 4 MiB");
  if (!isUtf8(line.bytes)) return problem("invalid_envelope", "the line is not valid UTF-8");
  const event = parse(line.bytes);
  if (event === undefined) return problem("invalid_envelope", "the line is not a JSON object");
  const { type } = event;
  if (!isEventType(type)) return problem("unexpected_type", `type is none of ${EVENT_TYPES.join(", ")}`);
  const hasPlace = event["partition"] !== undefined || event["offset"] !== undefined;
  const partition = hasPlace ? wholeNumber(event["partition"], 2 ** 16) : "0";
  const offset = hasPlace ? wholeNumber(event["offset"], 2 ** 48) : String(line.number);
  if (partition === undefined || offset === undefined) {
    return problem("invalid_envelope", "partition and offset are not both places on the bus");
  }
  const message = {
    topic: context.topic,
    partition: 0,
    offset: line.number,
    key: null,
    value: line.bytes,
    headers: { "dl-partition": partition, "dl-offset": offset },
    timestamp: context.now,
  };
  return { type, message };
}
