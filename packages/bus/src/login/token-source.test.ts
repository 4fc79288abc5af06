import { ServiceError } from "@conversation-export/runtime";
import { afterEach, describe, expect, it, vi } from "vitest";
import { createTokenSource, type FreshToken } from "./token-source.ts";

const MINUTE = 60_000;

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
    /** And answers the request that this causes. */
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
    expect(source.refused("older")).toBe(true);
    expect(await source.ask()).toBe("one");
    source.refused("one");
    at(1001);
    const asked = source.ask();
    requests[1]?.resolve({ value: "two", livesMs: MINUTE });
    expect(await asked).toBe("two");
  });
});

describe("the token of a login, by the clock", () => {
  afterEach(() => {
    vi.useRealTimers();
  });

  const startClock = (livesMs: number) => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] });
    const state = { given: 0, asked: 0, isAway: false };
    const source = createTokenSource({
      fetch: () => {
        state.asked += 1;
        if (state.isAway) {
          return Promise.reject(new ServiceError("bus_token_away", "away", { retryable: true }));
        }
        state.given += 1;
        return Promise.resolve({ value: `token ${state.given}`, livesMs });
      },
    });
    return { state, source };
  };

  it("is renewed when nobody asks until the session ends with it, also when the endpoint is away at first", async () => {
    const { state, source } = startClock(15 * MINUTE);
    const late: unknown[] = [];
    expect(await source.ask((error) => late.push(error))).toBe("token 1");
    await vi.advanceTimersByTimeAsync(11 * MINUTE);
    state.isAway = true;
    await vi.advanceTimersByTimeAsync(MINUTE + 20_000);
    expect(late.length).toBeGreaterThanOrEqual(3);
    state.isAway = false;
    await vi.advanceTimersByTimeAsync(10_000);
    state.isAway = true;
    // Ten seconds before the token's end, as kafkajs logs in.
    await vi.advanceTimersByTimeAsync(15 * MINUTE - 10_000 - performance.now());
    expect(await source.ask()).toBe("token 2");
  });

  it("is asked for in vain until its end only, and no more when nobody asked for two lives", async () => {
    const { state, source } = startClock(15 * MINUTE);
    await source.ask();
    state.isAway = true;
    await vi.advanceTimersByTimeAsync(60 * MINUTE);
    expect(state.asked).toBeLessThan(40);
    expect(vi.getTimerCount()).toBe(0);

    const { state: idle, source: other } = startClock(15 * MINUTE);
    await other.ask();
    await vi.advanceTimersByTimeAsync(120 * MINUTE);
    expect(idle.given).toBeLessThanOrEqual(4);
    expect(vi.getTimerCount()).toBe(0);
    expect(await other.ask()).toBe(`token ${idle.given}`);
  });

  it("waits no shorter than a timer can: a token of two months", async () => {
    const { state, source } = startClock(60 * 24 * 60 * MINUTE);
    await source.ask();
    await vi.advanceTimersByTimeAsync(40 * 24 * 60 * MINUTE);
    expect(state.asked).toBe(1);
  });
});

describe("tokens that brokers refuse", () => {
  /** Returns how many until it is for good. */
  const refuseAll = async (
    source: ReturnType<typeof createTokenSource>,
    skip: () => void,
  ): Promise<number> => {
    for (let count = 1; count < 50; count += 1) {
      const value = await source.ask();
      const mayHelp = source.refused(value);
      // Another connection had the same token.
      expect(source.refused(value)).toBe(mayHelp);
      if (!mayHelp) return count;
      skip();
    }
    throw new Error("no end");
  };

  it("are asked for again some times, more often after a login, and counted from the last login", async () => {
    let time = 0;
    let given = 0;
    const source = createTokenSource({
      now: () => time,
      fetch: () => {
        given += 1;
        return Promise.resolve({ value: String(given), livesMs: 15 * MINUTE });
      },
    });
    const skip = () => {
      time += 20_000;
    };
    expect(await refuseAll(source, skip)).toBe(3);
    skip();
    await source.ask();
    source.accepted();
    expect(await refuseAll(source, skip)).toBe(7);
    skip();
    await source.ask();
    source.accepted();
    expect(await refuseAll(source, skip)).toBe(7);
  });
});
