import { expect, it } from "vitest";
import type { Session } from "../session/session.ts";
import { createWriter } from "./writer.ts";

const INSERT = { table: "changes", columns: ["id"], rows: 1, body: Buffer.from("x"), uploadedAt: 5 };

const setUp = () => {
  const sent: unknown[] = [];
  const session = {
    with: () => session,
    upload: (...args: unknown[]) => {
      sent.push(args.at(-1));
      return Promise.resolve();
    },
  } as unknown as Session;
  return { writer: createWriter({ session }), sent };
};

it("does not send rows with an earlier instant of upload than the ticket wants", async () => {
  const { writer, sent } = setUp();
  await expect(writer.insert(INSERT, undefined, { notAfter: 1_000, uploadFrom: 6 })).rejects.toMatchObject({
    causeName: "UPLOAD_TOO_EARLY",
    retryable: true,
  });
  expect(sent).toEqual([]);
});

it("names the instant of upload in the id of the query, and the end of the ticket", async () => {
  const { writer, sent } = setUp();
  await writer.insert(INSERT, undefined, { notAfter: 1_000.7, uploadFrom: 5 });
  await writer.insert(INSERT);
  expect(sent).toMatchObject([
    { queryPrefix: "uploaded-5-", settings: { log_comment: "not after 1000" } },
    { queryPrefix: "uploaded-5-", settings: {} },
  ]);
});
