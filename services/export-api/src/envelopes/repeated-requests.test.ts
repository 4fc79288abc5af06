import { parseTimestamp } from "@conversation-export/domain";
import { describe, expect, it } from "vitest";
import { AUTHORIZED, CLIENT, createListReader, createTestApp, KEY } from "../http/app.fixture.ts";

const START = parseTimestamp("2024-03-01T00:00:00Z") ?? 0;
const records = Array.from({ length: 150 }, (_, index) => ({
  clientId: "acme",
  created: START + index,
  updated: START + index,
  id: `r${String(index).padStart(3, "0")}`,
  conversationId: "c",
}));
const FIRST = "/api/v2/export/messages?created_since=2024-03-01T00:00:00Z&page_size=100";

const setUp = (linkBounds: "same" | "advancing" = "same", ofClient: "same" | "advancing" | null = null) => {
  const clients = { [KEY]: { ...CLIENT, linkBounds: ofClient } };
  let now = 1_000;
  const { reader } = createListReader({ records, clients });
  const test = createTestApp(reader, { linkBounds, clock: () => now });
  const ask = (url: string, method: "GET" | "HEAD" = "GET") =>
    test.app.inject({ url, method, headers: { ...AUTHORIZED, host: "h" } });
  const notices = async (url: string, times: number): Promise<(string | undefined)[]> => {
    const seen: (string | undefined)[] = [];
    for (let n = 0; n < times; n += 1) seen.push((await ask(url)).headers["x-export-notice"]?.toString());
    return seen;
  };
  const wait = (ms: number): void => {
    now += ms;
  };
  return { ...test, ask, notices, wait };
};

const times = (count: number) => expect.stringContaining(`was sent ${count} times in a row`) as string;

describe("a client that repeats its own request", () => {
  it("is reported from the third time on, in a header, one log line and a metric", async () => {
    const { notices, logLines, metricsText } = setUp();
    expect(await notices(FIRST, 5)).toEqual([undefined, undefined, times(3), times(4), times(5)]);
    const warnings = logLines.filter(({ level }) => level === "warn");
    expect(warnings).toMatchObject([
      { msg: "client repeats a page and follows no link", clientId: "acme", list: "messages", times: 3 },
    ]);
    expect(await metricsText()).toMatch(
      /^conversation_export_api_repeated_pages_total\{list="messages",client="acme",.*\} 3$/m,
    );
  });

  it("is recognised by what it asks for, however it is written", async () => {
    const { ask, notices } = setUp();
    const spelled = [
      "/api/v2/export/messages?page_size=100&created_since=2024-03-01T01:00:00%2B01:00",
      "/api/v2/export/messages?created_since=2024-03-01T00:00:00.000Z&created_to=2024-03-08T00:00:00Z&page_size=100",
    ];
    for (const url of spelled) expect((await ask(url)).headers).not.toHaveProperty("x-export-notice");
    expect(await notices(FIRST, 1)).toEqual([times(3)]);
  });

  it("is reported in the legacy versions, too", async () => {
    const { notices } = setUp();
    const url = "/data_api/v1/messages?created_since=2024-03-01T00:00:00&page_size=10";
    expect(await notices(url, 3)).toEqual([undefined, undefined, times(3)]);
  });

  it("is reported in each of the windows that it reads at once", async () => {
    const { notices } = setUp();
    const other = FIRST.replace("00:00:00Z", "00:00:00.000010Z");
    for (let n = 0; n < 2; n += 1) {
      expect([...(await notices(FIRST, 1)), ...(await notices(other, 1))]).toEqual([undefined, undefined]);
    }
    expect([...(await notices(FIRST, 1)), ...(await notices(other, 1))]).toEqual([times(3), times(3)]);
  });
});

describe("nobody is warned", () => {
  it("who follows the link in between", async () => {
    const { ask, notices } = setUp();
    for (let n = 0; n < 4; n += 1) {
      const first = await ask(FIRST);
      expect(first.headers).not.toHaveProperty("x-export-notice");
      const link = first.json<{ meta: { next_page_uri: string } }>().meta.next_page_uri;
      await ask(new URL(link).pathname + new URL(link).search);
    }
    expect(await notices(FIRST, 2)).toEqual([undefined, undefined]);
  });

  it("whose page is the last, or who asks for headers alone", async () => {
    const { ask, notices } = setUp();
    const whole = FIRST.replace("page_size=100", "page_size=1000");
    expect(await notices(whole, 4)).toEqual(Array(4).fill(undefined));
    for (let n = 0; n < 4; n += 1)
      expect((await ask(FIRST, "HEAD")).headers).not.toHaveProperty("x-export-notice");
  });

  it("whose links advance, by the setting of the service or by its own", async () => {
    expect(await setUp("advancing").notices(FIRST, 4)).toEqual(Array(4).fill(undefined));
    expect(await setUp("same", "advancing").notices(FIRST, 4)).toEqual(Array(4).fill(undefined));
    expect(await setUp("advancing", "same").notices(FIRST, 3)).toEqual([undefined, undefined, times(3)]);
  });

  it("who comes back after an hour, or has asked for many other windows since", async () => {
    const { notices, wait } = setUp();
    await notices(FIRST, 2);
    wait(3_600_001);
    expect(await notices(FIRST, 2)).toEqual([undefined, undefined]);
    for (let n = 1; n <= 32; n += 1) await notices(FIRST.replace("00:00Z", `00:00.0000${10 + n}Z`), 1);
    expect(await notices(FIRST, 2)).toEqual([undefined, undefined]);
  });
});
