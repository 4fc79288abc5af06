import { expect, it } from "vitest";
import type { Session } from "../session/session.ts";
import { createWriter } from "./writer.ts";

const INSERT = { table: "changes", columns: ["id", "kind"], rows: 1, body: Buffer.from("x") };

const setUp = () => {
  const sent: { query: string; options: unknown }[] = [];
  const world = { asked: 0, types: { id: "String" } as Record<string, string> };
  const session = {
    with: () => session,
    rows: () => {
      world.asked += 1;
      return Promise.resolve(Object.entries(world.types).map(([name, type]) => ({ name, type })));
    },
    upload: (_name: string, query: string, _body: Buffer, options: unknown) => {
      sent.push({ query: query.replaceAll(/\s+/g, " "), options });
      return Promise.resolve();
    },
  } as unknown as Session;
  return { writer: createWriter({ session }), sent, world };
};

it("has the stamp and the generation of the ticket checked, and names the stamp in the id of the query", async () => {
  const { writer, sent, world } = setUp();
  world.types = { id: "String", kind: "Enum8('a' = 1)", more: "UInt8" };
  await writer.insert(INSERT, { stamp: 7, generation: 3 });
  const [insert] = sent;
  expect(insert?.query).toMatch(
    /^INSERT INTO changes \(id, kind\) SELECT \* FROM input\('id String, kind Enum8\(\\'a\\' = 1\)'\) WHERE \(SELECT .* FORMAT RowBinary$/,
  );
  expect(insert?.query).toContain("throwIf(maxIf(value, name = 'announced') >= 7,");
  expect(insert?.query).toContain("throwIf(maxIf(value, name = 'required') > 3,");
  expect(insert?.query).toContain("throwIf(7 > toUnixTimestamp64Micro(now64(6)) + 10000000,");
  expect(insert?.options).toMatchObject({
    queryPrefix: "uploaded-7-",
    settings: { log_comment: "stamped records.insert" },
  });
});

it("asks for the types of a table once, and again while it lacks a column", async () => {
  const { writer, sent, world } = setUp();
  const ticket = { stamp: 7, generation: 3 };
  for (const asked of [1, 2]) {
    await expect(writer.insert(INSERT, ticket)).rejects.toMatchObject({ retryable: true });
    expect([world.asked, sent]).toEqual([asked, []]);
  }
  world.types = { ...world.types, kind: "String" };
  for (let at = 0; at < 2; at += 1) await writer.insert(INSERT, ticket);
  expect([world.asked, sent.length]).toEqual([3, 2]);
});
