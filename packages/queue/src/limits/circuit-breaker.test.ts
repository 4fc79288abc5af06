import { expect, it } from "vitest";
import { createCircuitBreaker } from "./circuit-breaker.ts";

const never = (): Promise<never> => new Promise(() => undefined);

it("waits once for an answer that does not come, then tries one call a second until one is answered", async () => {
  const seen = { asked: 0, away: 0, back: 0, connected: true, now: 0 };
  let question: () => Promise<number> = never;
  const breaker = createCircuitBreaker({
    isConnected: () => seen.connected,
    answerWithinMs: 1,
    clock: () => seen.now,
    onAway: () => seen.away++,
    onBack: () => seen.back++,
  });
  const ask = () =>
    breaker.ask(() => {
      seen.asked++;
      return question();
    });

  expect(await ask()).toBeUndefined();
  seen.now += 999;
  for (let call = 0; call < 10; call++) expect(await ask()).toBeUndefined();
  expect(seen).toMatchObject({ asked: 1, away: 1, back: 0 });

  seen.now += 1;
  const probe = ask();
  // Not behind the probe.
  expect(await ask()).toBeUndefined();
  expect(await probe).toBeUndefined();
  expect(seen).toMatchObject({ asked: 2, away: 1, back: 0 });

  seen.now += 1_000;
  question = () => Promise.resolve(0);
  expect(await ask()).toBe(0);
  expect(await Promise.all([ask(), ask()])).toEqual([0, 0]);
  expect(seen).toMatchObject({ asked: 5, away: 1, back: 1 });

  seen.connected = false;
  expect(await ask()).toBeUndefined();
  expect(seen.asked).toBe(5);
});
