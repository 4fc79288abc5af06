import { expect, it } from "vitest";
import type { Session } from "../session/session.ts";
import { createWriter } from "./writer.ts";

const INSERT = { table: "changes", columns: ["id", "kind"], rows: 1, body: Buffer.from("x"), uploadedAt: 5 };

const setUp = () => {
  const sent: { query: string; options: unknown }[] = [];
  const session = {
    with: () => session,
    upload: (_name: string, query: string, _body: Buffer, options: unknown) => {
      sent.push({ query: query.replaceAll(/\s+/g, " "), options });
      return Promise.resolve();
    },
  } as unknown as Session;
  return { writer: createWriter({ session }), sent };
};

it("has the stamp and the generation of the ticket checked, and names the stamp in the id of the query", async () => {
  const { writer, sent } = setUp();
  await writer.insert(INSERT, undefined, { stamp: 7, generation: 3 });
  const [insert] = sent;
  expect(insert?.query).toMatch(
    /^INSERT INTO changes \(id, kind\) SELECT \* FROM input\(\) WHERE \(SELECT .* FORMAT RowBinary$/,
  );
  expect(insert?.query).toContain("throwIf(maxIf(value, name = 'announced') >= 7,");
  expect(insert?.query).toContain("throwIf(maxIf(value, name = 'required') > 3,");
  expect(insert?.query).toContain("throwIf(7 > toUnixTimestamp64Micro(now64(6)) + 10000000,");
  expect(insert?.options).toMatchObject({
    queryPrefix: "uploaded-7-",
    settings: { log_comment: "stamped records.insert" },
  });
});

it("has nothing checked without a ticket", async () => {
  const { writer, sent } = setUp();
  await writer.insert(INSERT);
  expect(sent).toMatchObject([
    { query: "INSERT INTO changes (id, kind) FORMAT RowBinary", options: { queryPrefix: "uploaded-5-" } },
  ]);
});
