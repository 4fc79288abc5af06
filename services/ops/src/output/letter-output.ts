import type { Letter } from "@conversation-export/bus";
import { renderColumns, renderTable } from "./print.ts";
import { visibleLines } from "./visible-lines.ts";

const isoOrNull = (ms: number | null): string | null => (ms === null ? null : new Date(ms).toISOString());

/** The name of a letter: the topic of the event, and the letter's place in its dead-letter topic. */
export const letterName = ({ topic, place }: Pick<Letter, "topic" | "place">): string =>
  `${topic}/${place.partition}/${place.offset}`;

/** Where the event was read: partition and offset in its topic. */
const placeOf = ({ arrival }: Pick<Letter, "arrival">): string => `${arrival.partition}/${arrival.offset}`;

/** A letter as `--json` prints it, without its payload. */
export const letterFields = (letter: Letter) => ({
  letter: letterName(letter),
  reason: letter.reason,
  detail: letter.detail,
  topic: letter.topic,
  arrival: letter.arrival,
  arrived_at: isoOrNull(letter.arrivedAt),
  rejected_at: isoOrNull(letter.rejectedAt),
  replays: letter.replays,
  payload_left_out: letter.leftOut,
});

export const renderLetters = (letters: readonly Letter[]): string =>
  renderTable(
    ["DEAD LETTER", "REASON", "REJECTED", "EVENT AT", "REPLAYS BEFORE", "DETAIL"],
    letters.map((letter) => [
      letterName(letter),
      letter.reason,
      isoOrNull(letter.rejectedAt) ?? "-",
      placeOf(letter),
      letter.replays,
      letter.detail || "-",
    ]),
  );

const utf8 = new TextDecoder("utf-8", { fatal: true });

/** Bytes as text when they are UTF-8, else as base64. */
const textOrBase64 = (bytes: Buffer): { readonly text: string; readonly encoding: "utf-8" | "base64" } => {
  try {
    return { text: utf8.decode(bytes), encoding: "utf-8" };
  } catch {
    return { text: bytes.toString("base64"), encoding: "base64" };
  }
};

const headerTexts = ({ message }: Letter): [string, string][] =>
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

/** A letter with its key, headers and payload. */
export const letterContent = (letter: Letter) => {
  const { key, value } = letter.message;
  return {
    ...letterFields(letter),
    key: key === null ? null : textOrBase64(key).text,
    headers: headerTexts(letter).map(([name, text]) => ({ name, value: text })),
    payload: value === null ? null : textOrBase64(value).text,
    payload_encoding: value === null ? null : textOrBase64(value).encoding,
  };
};

export const renderLetter = (letter: Letter): string => {
  const { headers, payload, payload_encoding, arrival: _, ...fields } = letterContent(letter);
  const rows = Object.entries(fields).map(([name, value]) => [
    name.replaceAll("_", " "),
    String(value ?? "-"),
  ]);
  const carried = headers.map(({ name, value }) => ["header", `${name}: ${value}`]);
  const shown =
    payload === null
      ? "no payload"
      : `payload${payload_encoding === "base64" ? " (not text, shown as base64)" : ""}\n${visibleLines(payload)}`;
  return `${renderColumns([...rows, ["event at", placeOf(letter)], ...carried])}\n\n${shown}`;
};
