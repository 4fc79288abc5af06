import { type Rejected, type RejectionReason, rejected } from "./outcome.ts";
import { isAcceptedInstant, isTimestampForm, type Micros, parseTimestamp } from "./timestamp.ts";

/**
 * The instant in a text, µs; a rejection when there is none that is accepted: for the reason `malformed` when the text
 * has no accepted form.
 */
export function readInstant(text: string, field: string, malformed: RejectionReason): Micros | Rejected {
  const instant = parseTimestamp(text);
  if (instant !== undefined && isAcceptedInstant(instant)) return instant;
  if (instant !== undefined)
    return rejected("date_out_of_range", `${field} is not within 1970-01-01 to 2105-12-31`);
  if (isTimestampForm(text)) return rejected("date_out_of_range", `${field} does not exist`);
  return rejected(malformed, `${field} is not an ISO 8601 date-time`);
}
