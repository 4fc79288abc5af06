import type { BusEvent } from "../event.ts";

type Fields = Readonly<Record<string, unknown>>;

/** Numbers are doubles: enough for counting. */
export type Decoded = {
  readonly event: BusEvent;
  readonly mode: "structured" | "binary";
  readonly attributes: Fields;
  readonly data: Fields;
  readonly text: string;
};

export function decodeAll(events: Iterable<BusEvent>): Decoded[] {
  const decoded: Decoded[] = [];
  for (const event of events) {
    if (event.poison || event.value === null) continue;
    const text = event.value.toString("utf8");
    const json = JSON.parse(text) as Fields;
    if (event.headers["ce_specversion"] === undefined) {
      decoded.push({ event, mode: "structured", attributes: json, data: json["data"] as Fields, text });
      continue;
    }
    const entries = Object.entries(event.headers).map(([name, value]) => [name.replace(/^ce_/, ""), value]);
    decoded.push({ event, mode: "binary", attributes: Object.fromEntries(entries), data: json, text });
  }
  return decoded;
}
