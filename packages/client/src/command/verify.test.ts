import { expect, it, vi } from "vitest";
import { createCaller } from "../http/caller.ts";
import { json, startServer } from "../http/test-server.fixture.ts";
import { createStreams } from "../lists/streams.ts";
import { isEqual, verifyList } from "./verify.ts";

const record = (at: number, csat: number) => ({ _id: `r${at}`, csat });

const blockOf = (records: readonly object[]) => ({
  bytes: Buffer.from(records.map((one) => `${JSON.stringify(one)}\n`).join("")),
  lines: records.length,
});

type Feed = { readonly ids: readonly string[]; readonly watermark: string | null };

const verified = (
  copy: readonly object[],
  remote: readonly object[],
  {
    since = null,
    feed = () => ({ ids: [], watermark: null }),
    sleep = () => undefined,
  }: { since?: string | null; feed?: () => Feed; sleep?: (ms: number) => void },
) =>
  verifyList(
    {
      streams: {
        window: async function* () {
          yield blockOf(remote);
        },
        changesPage: () => {
          const { ids, watermark } = feed();
          return Promise.resolve({
            ...blockOf(ids.map((_id) => ({ _id }))),
            cursor: "2",
            endOfStream: true,
            watermark,
          });
        },
      } as never,
      target: {
        state: () => ({ cursor: "1", since, fields: null, watermark: null, firstPass: null }),
        count: () => copy.length,
        lines: async function* () {
          for (const one of copy) yield JSON.stringify(one);
        },
      } as never,
      sleep: (ms) => Promise.resolve(sleep(ms)),
      maxHeld: 10,
    },
    "conversations",
  );

const feedOf =
  (ids: readonly string[]): (() => Feed) =>
  () => ({ ids, watermark: null });

const many = (count: number, csat: number) => Array.from({ length: count }, (_, at) => record(at, csat));

it.each([
  -600_000, -10_000, 0, 600_000,
])("awaits what the feed shows later, with a clock that is %d ms ahead", async (ahead) => {
  vi.useFakeTimers({ toFake: ["Date"] });
  try {
    const stored = Date.parse("2026-10-05T00:00:01Z");
    let at = stored;
    const feed = (): Feed => {
      const stable = at - 6_000;
      const watermark = new Date(Math.floor(stable / 4_000) * 4_000).toISOString();
      return { ids: stable >= stored ? ["r2"] : [], watermark };
    };
    const sleep = (ms: number): void => {
      at += ms;
      vi.setSystemTime(at + ahead);
    };
    sleep(0);
    const result = await verified(many(2, 1).slice(0, 1), [record(0, 1), record(2, 1)], { feed, sleep });
    expect(result).toMatchObject({ changed: 1, missing: 0 });
    expect(isEqual(result)).toBe(true);
  } finally {
    vi.useRealTimers();
  }
});

it.each([
  null,
  "2026-10-05T00:00:00.000000Z",
])("waits a minute for a feed whose watermark stays %s", async (watermark) => {
  let waited = 0;
  const result = await verified([], [record(1, 1)], {
    feed: () => ({ ids: [], watermark }),
    sleep: (ms) => void (waited += ms),
  });
  expect(result).toMatchObject({ missing: 1 });
  expect(waited).toBe(60_000);
});

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
  expect(await verified(many(100, 1), remote, { feed: feedOf(changed) })).toMatchObject({
    changed: 100,
    isWhole: true,
  });
  const others = changed.filter((id) => id !== "r77");
  const result = await verified(many(100, 1), remote, { feed: feedOf(others) });
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
