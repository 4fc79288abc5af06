import { isUtf8 } from "node:buffer";
import {
  busPositionOf,
  type EventType,
  type Outcome,
  processEvent,
  rejected,
} from "@conversation-export/domain";
import type { BusMessage } from "./message.ts";

/**
 * The record that a message of the bus carries, or why there is none. `maxTimeAheadMs`: how much later than its arrival an event may claim to
 * be; `now` in milliseconds since the epoch.
 */
export const readMessage = (
  message: BusMessage,
  type: EventType,
  limits: { readonly maxTimeAheadMs: number; readonly now: number },
): Outcome => {
  const { value, headers, timestamp } = message;
  if (value !== null && !isUtf8(value)) return rejected("invalid_envelope", "the value is not valid UTF-8");
  // A message may come without a time, which is -1.
  const busTime = timestamp < 0 ? limits.now : Math.min(timestamp, limits.now);
  return processEvent(
    {
      text: value === null ? null : value.toString("utf8"),
      headers,
      position: busPositionOf(message),
      latestTime: (busTime + limits.maxTimeAheadMs) * 1000,
    },
    type,
  );
};
