import { ServiceError } from "@conversation-export/runtime";
import { describe, expect, it } from "vitest";
import { createTokenSource, type FreshToken } from "./token-source.ts";

const MINUTE = 60_000;

/** A source on a clock that the test sets; each request is answered by the test. */
const startSource = () => {
  let time = 0;
  const requests: PromiseWithResolvers<FreshToken>[] = [];
  const source = createTokenSource({
    now: () => time,
    fetch: () => {
      const request = Promise.withResolvers<FreshToken>();
      requests.push(request);
      return request.promise;
    },
  });
  return {
    source,
    requests,
    at: (ms: number) => {
      time = ms;
    },
    /** Asks, and answers the request that this causes. */
    first: async (value: string, livesMs: number): Promise<string> => {
      const asked = source.ask();
      requests.at(-1)?.resolve({ value, livesMs });
      return asked;
    },
  };
};

describe("the token of a login", () => {
  it("is asked for once by all who ask at the same time, and kept", async () => {
    const { source, requests } = startSource();
    const asked = Promise.all([source.ask(), source.ask(), source.ask()]);
    requests[0]?.resolve({ value: "one", livesMs: 15 * MINUTE });
    expect(await asked).toEqual(["one", "one", "one"]);
    expect(await source.ask()).toBe("one");
    expect(requests).toHaveLength(1);
  });

  it("is renewed in the background before its end, by one request", async () => {
    const { source, requests, at, first } = startSource();
    await first("one", 15 * MINUTE);
    at(11 * MINUTE);
    expect(await source.ask()).toBe("one");
    expect(requests).toHaveLength(1);
    at(12 * MINUTE);
    expect(await Promise.all([source.ask(), source.ask()])).toEqual(["one", "one"]);
    expect(requests).toHaveLength(2);
    requests[1]?.resolve({ value: "two", livesMs: 15 * MINUTE });
    await expect.poll(() => source.ask()).toBe("two");
    expect(requests).toHaveLength(2);
  });

  it.each([
    ["in its last minute", 15 * MINUTE, 14 * MINUTE],
    ["in the second half of a life of less than two minutes", 40_000, 20_000],
  ])("is not used %s", async (_when, livesMs, end) => {
    const { source, requests, at, first } = startSource();
    await first("one", livesMs);
    at(end - 1);
    expect(await source.ask()).toBe("one");
    requests[1]?.reject(new Error("the renewal in the background"));
    const { source: other, requests: more, at: set, first: begin } = startSource();
    await begin("one", livesMs);
    set(end);
    const asked = other.ask();
    more[1]?.resolve({ value: "two", livesMs });
    expect(await asked).toBe("two");
  });

  it("serves on while a renewal fails, says why, and waits before it asks again", async () => {
    const { source, requests, at, first } = startSource();
    await first("one", 15 * MINUTE);
    at(12 * MINUTE);
    const late: unknown[] = [];
    await source.ask((error) => late.push(error));
    requests[1]?.reject(new ServiceError("bus_token_away", "away", { retryable: true }));
    await expect.poll(() => late).toMatchObject([{ code: "bus_token_away" }]);
    expect(await source.ask()).toBe("one");
    expect(requests).toHaveLength(2);
    at(12 * MINUTE + 501);
    expect(await source.ask()).toBe("one");
    expect(requests).toHaveLength(3);
  });

  it("is not kept after a failure: all who waited get it, the next asks again", async () => {
    const { source, requests, at } = startSource();
    const asked = Promise.allSettled([source.ask(), source.ask()]);
    requests[0]?.reject(new ServiceError("bus_token", "refused"));
    expect(await asked).toMatchObject([{ reason: { code: "bus_token" } }, { reason: { code: "bus_token" } }]);
    at(501);
    const again = source.ask();
    requests[1]?.resolve({ value: "two", livesMs: MINUTE });
    expect(await again).toBe("two");
  });

  it("that a broker refused is not given out again; another one stays", async () => {
    const { source, requests, at, first } = startSource();
    await first("one", 15 * MINUTE);
    source.forget("older");
    expect(await source.ask()).toBe("one");
    source.forget("one");
    at(501);
    const asked = source.ask();
    requests[1]?.resolve({ value: "two", livesMs: MINUTE });
    expect(await asked).toBe("two");
  });
});
