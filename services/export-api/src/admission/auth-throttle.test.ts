import { expect, it } from "vitest";
import { ApiError } from "../http/api-error.ts";
import { createAuthThrottle, networkOf } from "./auth-throttle.ts";

const answerOf = (action: () => void): ApiError["answer"] | undefined => {
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
  const throttle = createAuthThrottle({ now: () => clock.now });
  for (let failure = 0; failure < 20; failure++) {
    expect(answerOf(() => throttle.check("192.0.2.1"))).toBeUndefined();
    throttle.failed("192.0.2.1");
  }
  clock.now += 15_000;
  for (let more = 0; more < 3; more++) {
    throttle.failed("192.0.2.1");
    expect(answerOf(() => throttle.check("192.0.2.1"))).toMatchObject({
      status: 429,
      type: "rate_limit_exceeded",
      details: expect.stringContaining("20 failed authentications per 1 minute"),
      headers: { "retry-after": "45" },
    });
  }
  expect(answerOf(() => throttle.check("192.0.2.2"))).toBeUndefined();
  clock.now += 45_000;
  expect(answerOf(() => throttle.check("192.0.2.1"))).toBeUndefined();
});

it("can be off", () => {
  const throttle = createAuthThrottle({ windows: [] });
  for (let failure = 0; failure < 100; failure++) throttle.failed("192.0.2.1");
  expect(answerOf(() => throttle.check("192.0.2.1"))).toBeUndefined();
});

it("forgets the oldest of very many addresses", () => {
  const throttle = createAuthThrottle({ windows: [{ requests: 1, seconds: 60 }] });
  const addresses = Array.from({ length: 10_001 }, (_, index) => `10.0.${index >> 8}.${index & 255}`);
  for (const address of addresses) throttle.failed(address);
  expect(answerOf(() => throttle.check("10.0.0.0"))).toBeUndefined();
  expect(answerOf(() => throttle.check("10.0.0.1"))?.status).toBe(429);
});

it.each([
  ["192.0.2.1", "192.0.2.1"],
  ["::ffff:192.0.2.1", "192.0.2.1"],
  ["::FFFF:192.0.2.1", "192.0.2.1"],
  ["::ffff:c000:201", "192.0.2.1"],
  ["2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"],
  ["2001:0DB8:0001:0002:ffff::1", "2001:db8:1:2::/64"],
  ["2001:db8::1", "2001:db8:0:0::/64"],
  ["2001:db8::", "2001:db8:0:0::/64"],
  ["::1", "0:0:0:0::/64"],
  ["::", "0:0:0:0::/64"],
  ["1:2::3:4:5:6:7", "1:2:0:3::/64"],
  ["fe80::1%eth0", "fe80:0:0:0::/64"],
  ["64:ff9b::192.0.2.1", "64:ff9b:0:0::/64"],
  ["", ""],
])("counts %j as %j", (address, network) => {
  expect(networkOf(address)).toBe(network);
});
