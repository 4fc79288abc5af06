import { randomUUID } from "node:crypto";
import { byList } from "@conversation-export/domain";
import { type ErasureResult, type JobContext } from "@conversation-export/queue";
import { type ErasureStore, isLimitError, type RequestCompletion } from "@conversation-export/warehouse";
import type { Approval } from "./approval.ts";
import type { RunSubjects } from "./run-subjects.ts";
import type { LatestJudgement } from "./latest-judgement.ts";

export type HidingDeps = {
  readonly requests: Pick<RequestCompletion, "waitingClients" | "begin" | "noteHidden">;
  readonly store: Pick<ErasureStore, "collect" | "count" | "hide">;
  readonly subjects: RunSubjects;
  readonly approval: Approval;
  readonly judgement: Pick<LatestJudgement, "announce">;
};

type Counts = Pick<ErasureResult, "hidden" | "held" | "found">;
type Hidden = Counts & {
  /** ClickHouse cannot look for all that these clients request. */
  readonly failed: ReadonlyMap<string, unknown>;
};

/** One client at a time, so that none waits for another. */
export type Hiding = (context: Pick<JobContext<unknown>, "signal" | "progress">) => Promise<Hidden>;

const NONE: Counts = { hidden: 0, held: 0, found: byList(() => 0) };

const sum = (one: Counts, other: Counts): Counts => ({
  hidden: one.hidden + other.hidden,
  held: one.held + other.held,
  found: byList((list) => one.found[list] + other.found[list]),
});

export const createHiding = (deps: HidingDeps): Hiding => {
  const { requests, store, subjects, judgement } = deps;

  const hideOf = async (clientId: string, signal: AbortSignal): Promise<Counts> => {
    const run = { id: randomUUID(), erases: false };
    if ((await subjects.note(run, { clientId })) === 0) return NONE;
    await store.collect(run);
    signal.throwIfAborted();
    const held = await deps.approval(run, clientId);
    // From here on neither refused nor held; what was decided meanwhile stays.
    if ((await requests.begin(run)) === 0) return { ...NONE, held };
    await store.hide(run);
    const hidden = await requests.noteHidden(run);
    const found = await store.count(run);
    await subjects.suppress(run);
    await judgement.announce();
    return { hidden, held, found };
  };

  return async ({ signal, progress }) => {
    const failed = new Map<string, unknown>();
    let counts = NONE;
    const clients = await requests.waitingClients();
    for (const [done, clientId] of clients.entries()) {
      signal.throwIfAborted();
      await progress({ done, total: clients.length, unit: "clients", note: "looking for records to hide" });
      try {
        counts = sum(counts, await hideOf(clientId, signal));
      } catch (error) {
        if (!isLimitError(error)) throw error;
        failed.set(clientId, error);
      }
    }
    return { ...counts, failed };
  };
};
