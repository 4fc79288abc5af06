import type { Exclusive } from "@conversation-export/queue";
import { createLogger, ServiceError } from "@conversation-export/runtime";
import { expect, it, vi } from "vitest";
import { createLocks, ROWS } from "./locks.ts";

const log = createLogger({ service: "test", level: "silent" });
const { signal } = new AbortController();
const exclusive: Exclusive = { run: (_, stop, work) => work(stop) };

it("lets merges go on before the first work, and looks for what a dead process left before each", async () => {
  const calls: string[] = [];
  const say = (call: string) => () => {
    calls.push(call);
    return Promise.resolve();
  };
  const replacer = { start: say("start"), recover: say("recover") };
  const lock = createLocks({ exclusive, replacer, log });
  await lock.run("windows", signal, say("ledger"));
  await lock.run(ROWS, signal, say("first"));
  await lock.run(ROWS, signal, say("second"));
  expect(calls).toEqual(["ledger", "start", "first", "recover", "second"]);
});

it("goes on trying at the start, and holds up nobody", async () => {
  const attempts = vi.fn();
  const replacer = {
    start: () => {
      attempts();
      return attempts.mock.calls.length < 3
        ? Promise.reject(new ServiceError("warehouse_query_failed", "ACCESS_DENIED"))
        : Promise.resolve();
    },
    recover: () => Promise.resolve(),
  };
  const lock = createLocks({ exclusive, replacer, log });
  lock.start();
  await vi.waitFor(() => expect(attempts).toHaveBeenCalledTimes(3));
  lock.stop();
});
