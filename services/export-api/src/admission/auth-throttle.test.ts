import { expect, it } from "vitest";
import { ApiError } from "../http/api-error.ts";
import { createAuthThrottle } from "./auth-throttle.ts";

const answerOf = (action: () => unknown): ApiError["answer"] | undefined => {
  try {
    action();
    return undefined;
  } catch (error) {
    if (error instanceof ApiError) return error.answer;
    throw error;
  }
};

it("refuses an address after its failures, until the window has ended", () => {
  const clock = { now: 1_700_000_000_000 };
  const windows = [{ requests: 20, seconds: 60 }];
  const throttle = createAuthThrottle({ windows, now: () => clock.now });
  for (let failure = 0; failure < 20; failure++) {
    expect(answerOf(() => throttle.failed("192.0.2.1"))).toBeUndefined();
  }
  clock.now += 15_000;
  for (const same of ["192.0.2.1", "192.0.2.1:4711", "::ffff:192.0.2.1"]) {
    expect(answerOf(() => throttle.failed(same))).toMatchObject({
      status: 429,
      type: "rate_limit_exceeded",
      details: expect.stringContaining("20 failed authentications per 1 minute"),
      headers: { "retry-after": "45" },
    });
  }
  expect(answerOf(() => throttle.failed("192.0.2.2"))).toBeUndefined();
  clock.now += 45_000;
  expect(answerOf(() => throttle.failed("192.0.2.1"))).toBeUndefined();
});

it("can be off", () => {
  const throttle = createAuthThrottle({ windows: [] });
  for (let failure = 0; failure < 100; failure++) {
    expect(answerOf(() => throttle.failed("192.0.2.1"))).toBeUndefined();
    expect(answerOf(() => throttle.attempt("192.0.2.1").refused())).toBeUndefined();
  }
});

it("forgets the oldest of very many addresses", () => {
  const throttle = createAuthThrottle({ windows: [{ requests: 1, seconds: 60 }] });
  const addresses = Array.from({ length: 10_001 }, (_, index) => `10.0.${index >> 8}.${index & 255}`);
  for (const address of addresses) throttle.failed(address);
  expect(answerOf(() => throttle.failed("10.0.0.2"))?.status).toBe(429);
  expect(answerOf(() => throttle.failed("10.0.0.0"))).toBeUndefined();
});

it("counts the networks of a site together, four times as many as of one subscriber", () => {
  const throttle = createAuthThrottle({ windows: [{ requests: 2, seconds: 60 }] });
  const answers = Array.from(
    { length: 20 },
    (_, index) => answerOf(() => throttle.failed(`2001:db8:1:${index}::1`))?.details ?? null,
  );
  expect(answers.slice(0, 8)).toEqual(Array(8).fill(null));
  expect(answers.slice(8)).toEqual(Array(12).fill("allowed: 8 failed authentications per 1 minute"));
  expect(answerOf(() => throttle.failed("2001:db8:2:1::1"))).toBeUndefined();
});

it("counts what is no address together, however it changes", () => {
  const throttle = createAuthThrottle({ windows: [{ requests: 3, seconds: 60 }] });
  const answers = Array.from({ length: 5 }, (_, index) =>
    answerOf(() => throttle.failed(`made up ${index}`)),
  );
  expect(answers.map((answer) => answer?.status)).toEqual([undefined, undefined, undefined, 429, 429]);
});

it("lets the look-ups of all addresses together fail only so often", () => {
  const throttle = createAuthThrottle({ windows: [], total: [{ requests: 50, seconds: 60 }] });
  const answers = Array.from({ length: 60 }, (_, index) =>
    answerOf(() => throttle.attempt(`192.0.2.${index}`).refused()),
  );
  expect(answers.slice(0, 50)).toEqual(Array(50).fill(undefined));
  expect(answers[50]).toMatchObject({
    details: "too many look-ups of unknown keys",
    headers: { "retry-after": "60" },
  });
  expect(answers.slice(50).map((answer) => answer?.status)).toEqual(Array(10).fill(429));
});

it("leaves half of the total to addresses within their limits", () => {
  const windows = [{ requests: 5, seconds: 60 }];
  const throttle = createAuthThrottle({ windows, total: [{ requests: 40, seconds: 60 }] });
  let looked = 0;
  for (let guess = 0; guess < 100; guess++) {
    const answer = answerOf(() => {
      const attempt = throttle.attempt("192.0.2.1");
      looked += 1;
      attempt.refused();
    });
    expect(answer?.status).toBe(guess < 5 ? undefined : 429);
  }
  expect(looked).toBe(5 + 20);
  expect(answerOf(() => throttle.attempt("192.0.2.2").refused())).toBeUndefined();
});

it("takes look-ups back that were no failures", () => {
  const windows = [{ requests: 1, seconds: 60 }];
  const throttle = createAuthThrottle({ windows, total: windows });
  for (let n = 0; n < 5; n++) throttle.attempt("2001:db8::1").forgive();
  expect(answerOf(() => throttle.failed("2001:db8::1"))).toBeUndefined();
  throttle.attempt("2001:db8::1").forgive();
  expect(answerOf(() => throttle.failed("2001:db8::1"))?.status).toBe(429);
});

it("reports every failure, however it is answered, and nothing that was none", () => {
  const results: string[] = [];
  const throttle = createAuthThrottle({
    windows: [{ requests: 2, seconds: 60 }],
    total: [{ requests: 3, seconds: 60 }],
    onFailure: (result) => results.push(result),
  });
  throttle.attempt("192.0.2.1").forgive();
  throttle.attempt("192.0.2.1").refused();
  throttle.failed("192.0.2.1");
  answerOf(() => throttle.failed("192.0.2.1"));
  answerOf(() => throttle.attempt("192.0.2.1").refused());
  answerOf(() => throttle.attempt("192.0.2.1"));
  throttle.attempt("192.0.2.2").refused();
  answerOf(() => throttle.attempt("192.0.2.2"));
  expect(results).toEqual(["refused", "refused", "limited", "limited", "limited", "refused", "unchecked"]);
});
