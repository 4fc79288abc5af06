import { Readable } from "node:stream";
import type { SuppressionKey } from "@conversation-export/domain";
import { expect, it } from "vitest";
import type { Session } from "../../session/session.ts";
import { createSuppressionReads } from "./suppression-reads.ts";

/** ClickHouse refuses a longer parameter. */
const MAX_PARAMETER = 131_072;

const encoded = (values: readonly string[]): number =>
  new URLSearchParams([
    ["", `[${values.map((value) => `'${value.replaceAll(/[\\']/g, "\\$&")}'`).join(",")}]`],
  ]).toString().length;

const startReads = () => {
  const sent: string[][] = [];
  const note = (parameters: Readonly<Record<string, unknown>> = {}): void => {
    for (const value of Object.values(parameters)) if (Array.isArray(value)) sent.push(value);
  };
  const session: Pick<Session, "rows" | "stream"> = {
    rows: async (_name, _query, options) => {
      note(options?.parameters);
      return [];
    },
    stream: async (_name, _query, options) => {
      note(options?.parameters);
      return Readable.from([]);
    },
  };
  return { reads: createSuppressionReads(session as Session), sent };
};

const keysOf = (kind: SuppressionKey["kind"], values: readonly string[]) =>
  values.map((value) => ({ clientId: "acme", kind, value }));
const many = (count: number, text: string) =>
  Array.from({ length: count }, (_, at) => `${at}${text.repeat(1_000)}`.slice(0, 1_000));

it.each([
  ":",
  "\\",
  "'",
  "€",
])("asks about long ids of %s in parameters that ClickHouse takes", async (text) => {
  const { reads, sent } = startReads();
  const values = many(300, text);
  await reads.lookUp([...keysOf("message", values), ...keysOf("end_user", values)]);
  await reads.hashes(() => true, { since: null, clients: values });
  expect(sent.flat()).toHaveLength(900);
  expect(sent.filter((piece) => encoded(piece) > MAX_PARAMETER)).toEqual([]);
});

it("asks about short ids a hundred at a time", async () => {
  const { reads, sent } = startReads();
  const values = Array.from({ length: 250 }, (_, at) => String(at));
  expect(await reads.lookUp(keysOf("message", values))).toEqual(values.map(() => 0));
  expect(await reads.secondsByHash(keysOf("message", values))).toEqual(values.map(() => 0));
  expect(sent.map((piece) => piece.length)).toEqual([100, 100, 50, 100, 100, 50]);
  expect(sent.slice(0, 3).flat()).toEqual(values);
});
