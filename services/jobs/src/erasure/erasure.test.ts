import { setImmediate } from "node:timers/promises";
import { expect, it } from "vitest";
import { createErasure, type ErasureDeps } from "./erasure.ts";

const signal = new AbortController().signal;

/** `suppresses`: whether each look at the persons of the run adds one; `left`: rows at each look. */
const setUp = (suppresses: readonly boolean[], left: readonly number[]) => {
  const steps: string[] = [];
  const waiting: ((settled: number) => void)[] = [];
  const given: unknown[] = [];
  const answers = [...suppresses];
  const lefts = [...left];
  const step = (name: string, answer?: () => unknown) => (): Promise<unknown> => {
    steps.push(name);
    return Promise.resolve(answer?.());
  };
  const deps = {
    requests: {
      waitingClients: () => Promise.resolve([]),
      due: () => Promise.resolve(),
      noteHidden: step("hidden"),
      complete: step("complete"),
      scrub: step("scrub"),
    },
    store: {
      note: () => Promise.resolve(),
      begin: step("begin", () => ({ requests: 1, found: 0, again: 0 })),
      persons: () => Promise.resolve(),
      suppressIds: step("suppress", () => (answers.shift() === true ? 1 : 0)),
      collect: step("collect"),
      count: () => Promise.resolve({}),
      remaining: step("remaining", () => ({ changes: lefts.shift() ?? 0 })),
      countRows: async (run: unknown) => void given.push(run),
      erase: (run: unknown) => {
        given.push(run);
        return step("erase")();
      },
      goneEverywhere: step("gone"),
      publish: step("publish"),
      eraseKeys: step("keys"),
      forget: step("forget"),
    },
    suppressions: {
      claimSecret: () => Promise.resolve("secret"),
      lookUp: () => Promise.resolve([]),
      add: () => Promise.resolve(),
    },
    judgement: {
      required: () => {
        steps.push("wait");
        return new Promise<number>((resolve) => waiting.push(resolve));
      },
    },
    hash: { ofSecret: "secret" },
    exclusive: {
      run: (_name: string, _signal: AbortSignal, work: () => Promise<unknown>) => work(),
      unlessTaken: (_name: string, _signal: AbortSignal, work: () => Promise<unknown>) => work(),
    },
  } as unknown as ErasureDeps;
  const context = {
    id: "1",
    signal,
    data: { clientId: null },
    progress: () => Promise.resolve(),
    log: { info: () => undefined },
  };
  const ended = createErasure(deps).run(
    context as unknown as Parameters<ReturnType<typeof createErasure>["run"]>[0],
  );
  const settled = async (): Promise<void> => {
    for (let turn = 0; turn < 5; turn += 1) await setImmediate();
  };
  return { steps, given, waiting, ended, settled };
};

it("looks for records only when nothing judged without its suppressions can appear, again for each that it adds", async () => {
  const { steps, given, waiting, ended, settled } = setUp([true, true, false], [2]);
  await settled();
  expect(steps).toEqual(["begin", "suppress", "wait"]);
  waiting.shift()?.(100);
  await settled();
  expect(steps.slice(3)).toEqual(["collect", "hidden", "suppress", "wait"]);
  waiting.shift()?.(200);
  expect(await ended).toMatchObject({ requests: 1, rounds: 1, deleted: { changes: 2 } });
  expect(steps.slice(7).join(" ")).toBe(
    "collect hidden suppress remaining erase remaining gone publish keys complete scrub forget",
  );
  expect(given).toEqual(Array(2).fill(expect.objectContaining({ settled: 200 })));
});

it("goes on with what has a later stamp once that is settled", async () => {
  const { steps, given, waiting, ended, settled } = setUp([], [2, 1]);
  await settled();
  waiting.shift()?.(100);
  await settled();
  expect(steps.slice(-3).join(" ")).toBe("erase remaining wait");
  expect(waiting).toHaveLength(1);
  waiting.shift()?.(200);
  expect(await ended).toMatchObject({ rounds: 2 });
  expect(given).toMatchObject([100, 100, 200, 200].map((instant) => ({ settled: instant })));
});
