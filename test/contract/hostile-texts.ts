import type { BusEvent } from "../sample/index.ts";
import { handMade } from "../sample/hand-made.ts";

/** Characters that programs take for the end of a line, text or file, or choke on. */
const CHARACTERS = [
  "\u2028",
  "\u2029",
  "\u0085",
  "\n",
  "\r",
  "\r\n",
  "\v",
  "\f",
  "\u001c",
  "\u001d",
  "\u001e",
  "\u0000",
  "\u001a",
  "\ufeff",
  "\ufffe",
  "\u007f",
  "\u009b",
  "\ud800",
  "\udc00",
  "😀",
  '"',
  "\\",
  "\\u2028",
];
const TEXTS = [...CHARACTERS, CHARACTERS.join("")].map((part) => `before${part}after${part}`);

export const hostileEvents = (client: string): BusEvent[] =>
  TEXTS.flatMap((text, index) => {
    const number = String(index).padStart(2, "0");
    const time = `2026-10-05T00:00:${number}Z`;
    const event = { client, time: "2026-10-06T00:00:00Z" };
    const free = { [text.toWellFormed()]: text, list: [text] };
    const attempt = { id: `h${number}`, date_created: time, reasoning: text };
    return [
      handMade({
        ...event,
        kind: "conversation",
        id: `c${number}`,
        data: {
          _id: `c${number}`,
          date_created: time,
          inquiry_summary: text,
          variables: free,
          handoffs: [attempt],
        },
      }),
      handMade({
        ...event,
        kind: "message",
        id: `m${number}`,
        data: {
          _id: `m${number}`,
          conversation_id: `c${number}`,
          date_created: time,
          answer_title: text,
          message_data: free,
        },
      }),
    ];
  });

export const HOSTILE_TEXTS = Object.fromEntries(
  [
    ["inquiry_summary", "c"],
    ["answer_title", "m"],
  ].map(([field, code]) => [
    field,
    Object.fromEntries(
      TEXTS.map((text, index) => [`${code}${String(index).padStart(2, "0")}`, text.toWellFormed()]),
    ),
  ]),
);
