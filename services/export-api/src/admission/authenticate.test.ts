import { parseRateWindows } from "@conversation-export/domain";
import { createKey, createLogger, parseKey, ServiceError } from "@conversation-export/runtime";
import type { ApiClient } from "@conversation-export/warehouse";
import { expect, it } from "vitest";
import { ApiError } from "../http/api-error.ts";
import { CLIENT, KEY } from "../http/app.fixture.ts";
import { createAuthThrottle } from "./auth-throttle.ts";
import { createAuthenticate } from "./authenticate.ts";
import { createKnownKeys } from "./known-keys.ts";

const setUp = (answer: (hash: string) => Promise<ApiClient | null>, windows = "off", total = "off") => {
  const known = createKnownKeys({
    load: () => Promise.resolve([parseKey(KEY)?.hash ?? ""]),
    log: createLogger({ service: "test", level: "silent" }),
  });
  const seen = { lookups: 0, results: [] as string[], now: 1_000 };
  const { authenticate: check, findAgain } = createAuthenticate({
    reader: {
      findKey: (hash) => {
        seen.lookups += 1;
        return answer(hash);
      },
    },
    cacheMs: 10_000,
    clock: () => seen.now,
    throttle: createAuthThrottle({
      windows: parseRateWindows(windows) ?? [],
      total: parseRateWindows(total) ?? [],
    }),
    known,
    onLookup: (result) => seen.results.push(result),
  });
  const authenticate = (authorization: string | undefined, address = "192.0.2.1") =>
    check({ authorization }, address);
  return { authenticate, check, findAgain, known, seen };
};

const statusOf = async (result: Promise<unknown>): Promise<number> => {
  try {
    await result;
  } catch (error) {
    if (error instanceof ApiError) return error.answer.status;
    throw error;
  }
  return 200;
};

it("asks once, however many come at once, and again when the answer is old", async () => {
  const { authenticate, seen } = setUp(() => Promise.resolve(CLIENT));
  const clients = await Promise.all(Array.from({ length: 50 }, () => authenticate(`Bearer ${KEY}`)));
  expect(clients).toEqual(Array(50).fill(CLIENT));
  expect(seen.lookups).toBe(1);
  seen.now += 9_999;
  await authenticate(`bearer ${KEY}`);
  expect(seen.lookups).toBe(1);
  seen.now += 2;
  await authenticate(`BEARER  ${KEY}`);
  expect(seen.lookups).toBe(2);
});

it("refuses a revoked key as soon as the cached answer is old", async () => {
  let answer: ApiClient | null = CLIENT;
  const { authenticate, seen } = setUp(() => Promise.resolve(answer));
  expect(await statusOf(authenticate(`Bearer ${KEY}`))).toBe(200);
  answer = null;
  seen.now += 10_001;
  expect(await statusOf(authenticate(`Bearer ${KEY}`))).toBe(401);
});

it("asks again about an unknown key after two seconds", async () => {
  let answer: ApiClient | null = null;
  const { authenticate, seen } = setUp(() => Promise.resolve(answer));
  expect(await statusOf(authenticate(`Bearer ${KEY}`))).toBe(401);
  answer = CLIENT;
  seen.now += 1_999;
  expect(await statusOf(authenticate(`Bearer ${KEY}`))).toBe(401);
  seen.now += 2;
  expect(await statusOf(authenticate(`Bearer ${KEY}`))).toBe(200);
  expect(seen.lookups).toBe(2);
});

it("refuses what cannot be a key without asking", async () => {
  const { authenticate, seen } = setUp(() => Promise.resolve(CLIENT));
  for (const header of [
    undefined,
    "",
    "Bearer",
    "Bearer ",
    KEY,
    `Basic ${KEY}`,
    `Bearer ${KEY} x`,
    `Bearer ${KEY.slice(0, -1)}`,
    `Bearer ${KEY}0`,
  ]) {
    expect(await statusOf(authenticate(header)), header).toBe(401);
  }
  expect(seen.lookups).toBe(0);
});

it("says how to send a key, and never repeats what was sent", async () => {
  const { authenticate, check } = setUp(() => Promise.resolve(null));
  const how = "send the header Authorization: Bearer <key>";
  const missing = { answer: { message: `An API key is required: ${how}`, details: null } };
  await expect(authenticate(undefined)).rejects.toMatchObject(missing);
  await expect(check({ "x-api-key": KEY }, "192.0.2.1")).rejects.toMatchObject({
    answer: { message: `An API key is required: ${how}, not X-API-Key` },
  });
  for (const header of [KEY, `Basic ${KEY}`, `Token ${KEY}`, `Bearer ${KEY} x`, "Bearer nonsense"]) {
    await expect(authenticate(header), header).rejects.toMatchObject({
      answer: {
        message: `The API key cannot be verified: ${how}`,
        headers: { "www-authenticate": 'Bearer realm="conversation-export", error="invalid_token"' },
      },
    });
  }
  await expect(authenticate(`Bearer ${KEY}`)).rejects.toMatchObject({
    answer: { message: "The API key cannot be verified" },
  });
});

it("answers 404 for a key of a deleted client and names the client", async () => {
  const { authenticate } = setUp(() => Promise.resolve({ ...CLIENT, clientDeleted: true }));
  await expect(authenticate(`Bearer ${KEY}`)).rejects.toMatchObject({
    answer: {
      status: 404,
      type: "resource_not_found",
      details: null,
      message: expect.stringContaining("acme"),
    },
  });
});

it("passes trouble of the warehouse on, to all that wait, and remembers nothing of it", async () => {
  let broken = true;
  const trouble = new ServiceError("warehouse_unavailable", "away", { retryable: true });
  const { authenticate, seen } = setUp(() => (broken ? Promise.reject(trouble) : Promise.resolve(CLIENT)));
  const results = await Promise.allSettled([authenticate(`Bearer ${KEY}`), authenticate(`Bearer ${KEY}`)]);
  expect(results).toEqual([
    { status: "rejected", reason: trouble },
    { status: "rejected", reason: trouble },
  ]);
  broken = false;
  expect(await authenticate(`Bearer ${KEY}`)).toEqual(CLIENT);
  expect(seen.results).toEqual(["asked", "asked"]);
});

it("keeps answers of different keys apart", async () => {
  const other = createKey().key;
  const { authenticate, seen } = setUp(() => Promise.resolve(CLIENT));
  await authenticate(`Bearer ${KEY}`);
  await authenticate(`Bearer ${other}`);
  expect(seen.lookups).toBe(2);
});

it("answers 429 to an address that failed too often, but for keys that are known to be good", async () => {
  const unknown = createKey().key;
  let answer: ApiClient | null = CLIENT;
  const { authenticate, seen } = setUp(() => Promise.resolve(answer), "3/1m", "2/1m");
  expect(await statusOf(authenticate(`Bearer ${KEY}`))).toBe(200);
  answer = null;
  expect(await statusOf(authenticate(undefined))).toBe(401);
  expect(await statusOf(authenticate("Bearer nonsense"))).toBe(401);
  expect(await statusOf(authenticate(`Bearer ${unknown}`))).toBe(401);
  expect(seen.lookups).toBe(2);
  for (let n = 0; n < 3; n += 1) {
    for (const header of [undefined, "Bearer nonsense", `Bearer ${createKey().key}`]) {
      expect(await statusOf(authenticate(header))).toBe(429);
    }
  }
  expect(seen.lookups).toBe(3);
  expect(await statusOf(authenticate(`Bearer ${KEY}`))).toBe(200);
  seen.now += 10_001;
  answer = CLIENT;
  expect(await statusOf(authenticate(`Bearer ${KEY}`))).toBe(200);
  expect(await statusOf(authenticate("Bearer nonsense", "192.0.2.2"))).toBe(401);
});

it("looks up eight unknown keys at a time, and further ones and known keys as before", async () => {
  const { promise, resolve } = Promise.withResolvers<null>();
  const good = parseKey(KEY)?.hash;
  const { authenticate, known, seen } = setUp(
    (hash) => (hash === good ? Promise.resolve(CLIENT) : promise),
    "6/1m",
    "100/1m",
  );
  await known.refresh();
  const guess = (address: string) => statusOf(authenticate(`Bearer ${createKey().key}`, address));
  const guesses = ["192.0.2.1", "192.0.2.2"].flatMap((address) =>
    Array.from({ length: 4 }, () => guess(address)),
  );
  await expect(authenticate(`Bearer ${createKey().key}`, "192.0.2.3")).rejects.toMatchObject({
    answer: { status: 429, headers: { "retry-after": "1" } },
  });
  expect(seen.lookups).toBe(8);
  expect(await statusOf(authenticate(`Bearer ${KEY}`))).toBe(200);
  resolve(null);
  expect(await Promise.all(guesses)).toEqual(Array(8).fill(401));
  expect(await guess("192.0.2.3")).toBe(401);
});

it("looks up a known key when guesses have used up the total, and answers 429 for another", async () => {
  const good = parseKey(KEY)?.hash;
  const { authenticate, known, seen } = setUp(
    (hash) => Promise.resolve(hash === good ? CLIENT : null),
    "20/1m",
    "40/1m",
  );
  await known.refresh();
  for (let n = 0; n < 60; n += 1) {
    await statusOf(authenticate(`Bearer ${createKey().key}`, `192.0.2.${n}`));
  }
  expect(seen.lookups).toBe(40);
  expect(await statusOf(authenticate(`Bearer ${KEY}`, "192.0.2.60"))).toBe(200);
  await expect(authenticate(`Bearer ${createKey().key}`, "192.0.2.60")).rejects.toMatchObject({
    answer: {
      status: 429,
      details: "too many look-ups of unknown keys",
      headers: { "retry-after": expect.stringMatching(/^(?:59|60)$/) },
    },
  });
});

it("answers each of those that wait for one look-up by the failures of its own address", async () => {
  const { authenticate, seen } = setUp(() => Promise.resolve(null), "3/1m", "100/1m");
  for (let n = 0; n < 3; n += 1) await statusOf(authenticate(undefined, "192.0.2.1"));
  const same = `Bearer ${createKey().key}`;
  const answers = ["192.0.2.1", "192.0.2.2", "192.0.2.1"].map((address) =>
    statusOf(authenticate(same, address)),
  );
  expect(await Promise.all(answers)).toEqual([429, 401, 429]);
  expect(seen.lookups).toBe(1);
});

it("looks up a key that it has not seen, once, also for an address whose others failed too often", async () => {
  let answer: ApiClient | null = null;
  const { authenticate, seen } = setUp(() => Promise.resolve(answer), "3/1m", "100/1m");
  for (let n = 0; n < 10; n += 1) await statusOf(authenticate(`Bearer ${createKey().key}`));
  const before = seen.lookups;
  answer = CLIENT;
  const answers = await Promise.all(
    Array.from({ length: 50 }, () => statusOf(authenticate(`Bearer ${KEY}`))),
  );
  expect(answers).toEqual(Array(50).fill(200));
  expect(seen.lookups).toBe(before + 1);
});

it("counts neither a good key nor a warehouse that does not answer as a failure", async () => {
  let answer: () => Promise<ApiClient | null> = () => Promise.resolve(CLIENT);
  const { authenticate, seen } = setUp(() => answer(), "3/1m");
  const first = await Promise.all(Array.from({ length: 50 }, () => statusOf(authenticate(`Bearer ${KEY}`))));
  expect(first).toEqual(Array(50).fill(200));
  expect(seen.lookups).toBe(1);
  answer = () => Promise.reject(new ServiceError("warehouse_unavailable", "away", { retryable: true }));
  for (let n = 0; n < 5; n += 1) {
    await expect(authenticate(`Bearer ${createKey().key}`)).rejects.toMatchObject({ retryable: true });
  }
});

it("finds a key again, from the warehouse when asked for it", async () => {
  let answer: ApiClient | null = CLIENT;
  const { authenticate, findAgain, seen } = setUp(() => Promise.resolve(answer));
  const headers = { authorization: `Bearer ${KEY}` };
  await authenticate(headers.authorization);
  answer = { ...CLIENT, scopes: [] };
  expect(await findAgain(headers, false)).toEqual(CLIENT);
  expect(seen.lookups).toBe(1);
  expect(await findAgain(headers, true)).toEqual(answer);
  expect(seen.lookups).toBe(2);
  expect(await authenticate(headers.authorization)).toEqual(answer);
  answer = { ...CLIENT, clientDeleted: true };
  expect(await statusOf(findAgain(headers, true))).toBe(404);
  answer = null;
  expect(await statusOf(findAgain(headers, true))).toBe(401);
  expect(await statusOf(findAgain(headers, false))).toBe(401);
  expect(await statusOf(authenticate(headers.authorization))).toBe(401);
});
