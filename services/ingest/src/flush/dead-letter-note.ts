import { createHash } from "node:crypto";
import type { BusHeaders, OutgoingMessage } from "@conversation-export/bus";
import { headerText } from "@conversation-export/domain";

/** Small enough for every topic. */
const KEPT_BYTES = 1024;

/** Other headers with `dl-` may come from the message. */
const OWN = [
  "dl-reason",
  "dl-detail",
  "dl-topic",
  "dl-partition",
  "dl-offset",
  "dl-last-offset",
  "dl-time",
  "dl-rejected-at",
  "dl-replays",
];

const sha256 = (bytes: Buffer): string => createHash("sha256").update(bytes).digest("hex");

const factsOf = (name: string, bytes: Buffer): BusHeaders => ({
  [`${name}-length`]: String(bytes.length),
  [`${name}-sha256`]: sha256(bytes),
});

/** Lengths keep different headers from giving the same bytes. */
const bytesOf = (headers: BusHeaders): Buffer => {
  const parts = Object.entries(headers).flatMap(([name, value]) => [
    name,
    ...(Array.isArray(value) ? value : [value]).map((one) => one ?? ""),
  ]);
  return Buffer.concat(
    parts.flatMap((part) => {
      const length = Buffer.alloc(4);
      length.writeUInt32BE(Buffer.byteLength(part));
      return [length, Buffer.from(part)];
    }),
  );
};

/** Sent when the dead letter itself is too large. */
export const noteOf = (deadLetter: OutgoingMessage): OutgoingMessage => {
  const headers = deadLetter.headers ?? {};
  const own: BusHeaders = {};
  for (const name of OWN) {
    const text = headerText(headers[name]) ?? "";
    if (text !== "") own[name] = text.length > KEPT_BYTES ? text.slice(0, KEPT_BYTES) : text;
  }
  const others = Object.fromEntries(Object.entries(headers).filter(([name]) => !name.startsWith("dl-")));
  const key = deadLetter.key === null ? null : Buffer.from(deadLetter.key);
  const kept = key === null ? null : key.subarray(0, KEPT_BYTES);
  return {
    key: kept,
    value: null,
    headers: {
      ...own,
      "dl-key": kept?.toString("base64") ?? "",
      ...(key !== null && key.length > KEPT_BYTES && factsOf("dl-key", key)),
      ...(deadLetter.value !== null && factsOf("dl-payload", Buffer.from(deadLetter.value))),
      ...(Object.keys(others).length > 0 && factsOf("dl-headers", bytesOf(others))),
      "dl-payload": "left out",
    },
  };
};
