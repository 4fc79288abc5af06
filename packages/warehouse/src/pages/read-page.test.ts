import { Readable } from "node:stream";
import { expect, it } from "vitest";
import type { Session } from "../session/session.ts";
import type { Reader, Streamed } from "./page.ts";
import { MARK } from "./page-stream.ts";
import { createReader } from "./reader.ts";
import { endOfAnswer, instantsOfAnswer } from "./sql/page-sql.ts";

it("reads where the first keys of a window end", () => {
  expect(endOfAnswer("12\t1791072000000000\t1791072000000001\tC3AF64\n")).toEqual({
    keys: 12,
    first: 1_791_072_000_000_000,
    last: { date: 1_791_072_000_000_001, id: "ïd" },
  });
  expect(endOfAnswer("0\t0\t0\t\n")).toEqual({ keys: 0, first: 0, last: { date: 0, id: "" } });
  expect(instantsOfAnswer("3\t5\t4\n")).toEqual({ rows: 3, last: 5, before: 4 });
});

it.each([
  "",
  "\n",
  "\\N\t0\t0\t\n",
  "1\tnan\t1\t61\n",
  "1\t2\n",
  "1\t2\t3",
  "1\t2\t3\t61",
  "1\t2\t3\t61\n\n1\t2\t3\t61\n",
  "-1\t2\t3\t61\n",
])("takes %j for no answer about a window", (answer) => {
  for (const read of [endOfAnswer, instantsOfAnswer])
    expect(() => read(answer)).toThrow(expect.objectContaining({ causeName: "UNEXPECTED_ANSWER" }));
});

/** Five keys; answers are whole, but their rows are missing. */
const session: Pick<Session, "rows" | "stream" | "with"> = {
  rows: async <Row>() => [{ engine: "MergeTree" } as Row],
  stream: async (name) => {
    const answers: Record<string, string> = { "pages.conditions": "0\t0\n" };
    const end = /[._]end/.test(name) ? "5\t0\t1791072000000000\t61\n" : MARK;
    return Readable.from([Buffer.from(answers[name] ?? end)]);
  },
  with: () => session as Session,
};
const WINDOW = { clientId: "acme", since: 0, to: 2e15, pageSize: 10, wholeTies: false };
const CHANGES = { clientId: "acme", after: { date: 0, id: "" }, stableUpTo: 2e15, pageSize: 10 };

it.each<[string, (reader: Reader) => Promise<Streamed<unknown>>]>([
  ["conversations by creation", (reader) => reader.conversationsByCreation(WINDOW)],
  ["conversations by update", (reader) => reader.conversationsByUpdate(WINDOW)],
  ["messages", (reader) => reader.messagesByCreation(WINDOW)],
  ["messages of a conversation", (reader) => reader.messagesByCreation({ ...WINDOW, conversationId: "c" })],
  ["end users", (reader) => reader.endUsers({ clientId: "acme", limit: 10 })],
  ["changes of conversations", (reader) => reader.changes({ ...CHANGES, kind: "conversation" })],
  ["changes of end users", (reader) => reader.changes({ ...CHANGES, kind: "end_user" })],
])("does not take an answer without its rows for an empty page: %s", async (_, read) => {
  const reader = createReader({ session: session as Session, lookups: session as Session });
  await expect(read(reader)).rejects.toMatchObject({ causeName: "EXCEPTION_MIDWAY", retryable: true });
});
