import { expect, it } from "vitest";
import { createCaller } from "../http/caller.ts";
import { json, startServer } from "../http/test-server.fixture.ts";
import { createStreams } from "../lists/streams.ts";
import { isEqual, verifyList } from "./verify.ts";

const record = (at: number, csat: number) => ({ _id: `r${at}`, csat });

const blockOf = (records: readonly object[]) => ({
  bytes: Buffer.from(records.map((one) => `${JSON.stringify(one)}\n`).join("")),
  lines: records.length,
});

/** `changed`: ids in the change feed. */
const verified = (
  copy: readonly object[],
  remote: readonly object[],
  { since = null, changed = [] }: { since?: string | null; changed?: readonly string[] },
) =>
  verifyList(
    {
      streams: {
        window: async function* () {
          yield blockOf(remote);
        },
        changesPage: () =>
          Promise.resolve({
            ...blockOf(changed.map((_id) => ({ _id }))),
            cursor: "2",
            endOfStream: true,
            watermark: "2126-01-01T00:00:00Z",
          }),
      } as never,
      target: {
        state: () => ({ cursor: "1", since, fields: null, watermark: null, firstPass: null }),
        count: () => copy.length,
        lines: async function* () {
          for (const one of copy) yield JSON.stringify(one);
        },
      } as never,
      now: Date.now,
      sleep: () => Promise.resolve(),
      maxHeld: 10,
    },
    "conversations",
  );

const many = (count: number, csat: number) => Array.from({ length: count }, (_, at) => record(at, csat));

it("looks at every record of a copy that began later, however many more the service has", async () => {
  const remote = many(5_000, 1);
  const copy = remote.slice(0, 100);
  expect(isEqual(await verified(copy, remote, { since: "2026-10-01" }))).toBe(true);
  for (const wrong of [3, 50, 99]) {
    const spoilt = copy.with(wrong, record(wrong, 7));
    const result = await verified(spoilt, remote, { since: "2026-10-01" });
    expect(result).toMatchObject({ different: 1, missing: 0, examples: [`r${wrong}`] });
  }
});

it("goes on to what has not changed when much has", async () => {
  const remote = many(100, 2);
  const changed = remote.map(({ _id }) => _id);
  expect(await verified(many(100, 1), remote, { changed })).toMatchObject({ changed: 100, isWhole: true });
  const others = changed.filter((id) => id !== "r77");
  const result = await verified(many(100, 1), remote, { changed: others });
  expect(result).toMatchObject({ different: 1, examples: ["r77"] });
  expect(isEqual(result)).toBe(false);
});

it("reads end users by the address that was given, whatever their links say", async () => {
  const page = (id: string, next: string | null) =>
    json({ data: [{ end_user_id: id }], meta: { next_page_url: next } });
  const next = "https://public.example/api/v2/end-users/?cursor=b&limit=1000";
  const server = await startServer(page("a", next), page("b", null));
  try {
    const ids: unknown[] = [];
    const streams = createStreams(createCaller({ baseUrl: server.baseUrl, apiKey: "k" }));
    for await (const one of streams.records("end_users"))
      ids.push((one as { end_user_id: string }).end_user_id);
    expect(ids).toEqual(["a", "b"]);
    expect(server.asked).toEqual(["/api/v2/end-users/?limit=1000", "/api/v2/end-users/?cursor=b&limit=1000"]);
  } finally {
    await server.close();
  }
});
