import { type Rejected, type RejectionReason, rejected } from "./outcome.ts";
import { isAcceptedInstant, isTimestampForm, type Micros, parseTimestamp } from "./timestamp.ts";

export function readInstant(text: string): Micros | undefined {
  const instant = parseTimestamp(text);
  return instant !== undefined && isAcceptedInstant(instant) ? instant : undefined;
}

export function instantFaults(text: string, field: string, malformed: RejectionReason): Rejected[] {
  if (readInstant(text) !== undefined) return [];
  if (parseTimestamp(text) !== undefined)
    return [rejected("date_out_of_range", `${field} is not within 1970-01-01 to 2105-12-31`)];
  if (isTimestampForm(text)) return [rejected("date_out_of_range", `${field} does not exist`)];
  return [rejected(malformed, `${field} is not an ISO 8601 date-time`)];
}
