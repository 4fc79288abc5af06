import type { DeadLetter } from "@conversation-export/bus";
import { renderColumns, renderTable } from "./print.ts";
import { visibleLines } from "./visible-lines.ts";

const isoOrNull = (ms: number | null): string | null => (ms === null ? null : new Date(ms).toISOString());

const deadLetterName = ({ topic, place }: Pick<DeadLetter, "topic" | "place">): string =>
  `${topic}/${place.partition}/${place.offset}`;

const placeOf = ({ arrival }: Pick<DeadLetter, "arrival">): string =>
  `${arrival.partition}/${arrival.offset}`;

/** Without the payload. */
export const deadLetterFields = (deadLetter: DeadLetter) => ({
  dead_letter: deadLetterName(deadLetter),
  reason: deadLetter.reason,
  detail: deadLetter.detail,
  topic: deadLetter.topic,
  arrival: deadLetter.arrival,
  arrived_at: isoOrNull(deadLetter.arrivedAt),
  rejected_at: isoOrNull(deadLetter.rejectedAt),
  replays: deadLetter.replays,
  payload_left_out: deadLetter.leftOut,
});

export const renderDeadLetters = (deadLetters: readonly DeadLetter[]): string =>
  renderTable(
    ["DEAD LETTER", "REASON", "REJECTED", "EVENT AT", "REPLAYS BEFORE", "DETAIL"],
    deadLetters.map((deadLetter) => [
      deadLetterName(deadLetter),
      deadLetter.reason,
      isoOrNull(deadLetter.rejectedAt) ?? "-",
      placeOf(deadLetter),
      deadLetter.replays,
      deadLetter.detail || "-",
    ]),
  );

const utf8 = new TextDecoder("utf-8", { fatal: true });

const textOrBase64 = (bytes: Buffer): { readonly text: string; readonly encoding: "utf-8" | "base64" } => {
  try {
    return { text: utf8.decode(bytes), encoding: "utf-8" };
  } catch {
    return { text: bytes.toString("base64"), encoding: "base64" };
  }
};

const headerTexts = ({ message }: DeadLetter): [string, string][] =>
  Object.entries(message.headers)
    .filter(([name]) => !name.startsWith("dl-"))
    .flatMap(([name, value]) =>
      [value]
        .flat()
        .map((one): [string, string] => [
          name,
          one === undefined ? "" : textOrBase64(Buffer.isBuffer(one) ? one : Buffer.from(String(one))).text,
        ]),
    );

export const deadLetterContent = (deadLetter: DeadLetter) => {
  const { key, value } = deadLetter.message;
  return {
    ...deadLetterFields(deadLetter),
    key: key === null ? null : textOrBase64(key).text,
    headers: headerTexts(deadLetter).map(([name, text]) => ({ name, value: text })),
    payload: value === null ? null : textOrBase64(value).text,
    payload_encoding: value === null ? null : textOrBase64(value).encoding,
  };
};

export const renderDeadLetter = (deadLetter: DeadLetter): string => {
  const { headers, payload, payload_encoding, arrival: _, ...fields } = deadLetterContent(deadLetter);
  const rows = Object.entries(fields).map(([name, value]) => [
    name.replaceAll("_", " "),
    String(value ?? "-"),
  ]);
  const carried = headers.map(({ name, value }) => ["header", `${name}: ${value}`]);
  const shown =
    payload === null
      ? "no payload"
      : `payload${payload_encoding === "base64" ? " (not text, shown as base64)" : ""}\n${visibleLines(payload)}`;
  return `${renderColumns([...rows, ["event at", placeOf(deadLetter)], ...carried])}\n\n${shown}`;
};
