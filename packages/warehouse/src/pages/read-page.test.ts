import { Readable } from "node:stream";
import { expect, it } from "vitest";
import type { Session } from "../session/session.ts";
import type { Reader } from "./page.ts";
import { END_MARK } from "./page-stream.ts";
import { boundOfAnswer } from "./read-page.ts";
import { createReader } from "./reader.ts";
import { stepEndOfAnswer } from "./sql/line-sql.ts";

it("reads the end of the first rows of a window", () => {
  expect(boundOfAnswer("1791072000000000 12 7\n")).toEqual({
    date: 1_791_072_000_000_000,
    rows: 12,
    keys: 7,
  });
  expect(boundOfAnswer("0 0 0\n")).toEqual({ date: 0, rows: 0, keys: 0 });
  expect(stepEndOfAnswer("1791072000000000\n")).toBe(1_791_072_000_000_000);
  expect(stepEndOfAnswer("")).toBeNull();
});

it.each([
  "",
  "\n",
  "\\N 0 0\n",
  "nan 1 1\n",
  "1 2\n",
  "1 2 3",
  "1 2 3\n\n1 2 3\n1 2 3\n",
  "-1 2 3\n",
])("takes %j for no answer about a window", (answer) => {
  expect(() => boundOfAnswer(answer)).toThrow(expect.objectContaining({ causeName: "UNEXPECTED_ANSWER" }));
  if (answer !== "")
    expect(() => stepEndOfAnswer(answer)).toThrow(
      expect.objectContaining({ causeName: "UNEXPECTED_ANSWER" }),
    );
});

/** Knows of five keys; its answers to pages are whole, but all rows are missing. */
const session: Pick<Session, "rows" | "stream" | "with"> = {
  rows: async <Row>() => [{ engine: "MergeTree" } as Row],
  stream: async (name) => {
    const answers: Record<string, string> = { "pages.facts": "0\t0\n" };
    const bound = name.includes(".bound") ? "1791072000000000 5 5\n" : END_MARK;
    return Readable.from([Buffer.from(answers[name] ?? bound)]);
  },
  with: () => session as Session,
};
const WINDOW = { clientId: "acme", since: 0, to: 2e15, pageSize: 10, wholeTies: false };
const CHANGES = { clientId: "acme", after: { date: 0, id: "" }, settled: 2e15, pageSize: 10 };

it.each<[string, (reader: Reader) => Promise<unknown>]>([
  ["conversations by creation", (reader) => reader.conversationsByCreation(WINDOW)],
  ["conversations by update", (reader) => reader.conversationsByUpdate(WINDOW)],
  ["messages", (reader) => reader.messagesByCreation(WINDOW)],
  ["messages of a conversation", (reader) => reader.messagesByCreation({ ...WINDOW, conversationId: "c" })],
  ["end users", (reader) => reader.endUsers({ clientId: "acme", limit: 10 })],
  ["changes of conversations", (reader) => reader.changes({ ...CHANGES, kind: "conversation" })],
  ["changes of end users", (reader) => reader.changes({ ...CHANGES, kind: "end_user" })],
])("does not take an answer without its rows for an empty page: %s", async (_, read) => {
  const reader = createReader({ session: session as Session, lookups: session as Session });
  await expect(read(reader)).rejects.toMatchObject({ causeName: "UNEXPECTED_ANSWER", retryable: true });
});
