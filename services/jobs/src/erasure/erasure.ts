import { randomUUID } from "node:crypto";
import {
  type ErasureData,
  erasureJob,
  type ErasureResult,
  type Exclusive,
  type JobContext,
  type JobHandler,
} from "@conversation-export/queue";
import { ServiceError } from "@conversation-export/runtime";
import type { SubjectHash } from "@conversation-export/suppression";
import { heldRun, type RequestCompletion, type SuppressionStore } from "@conversation-export/warehouse";
import type { RunHolders } from "../process/run-holders.ts";
import type { Approval } from "./approval.ts";
import { disturbed } from "./disturbed.ts";
import type { FoundNotedStore } from "./found-noted.ts";
import { createHiding } from "./hiding.ts";
import { createRunSubjects } from "./run-subjects.ts";
import type { LatestJudgement } from "./latest-judgement.ts";

const MAX_ROUNDS = 10;
// Locks over all processes. They only spare work, so what was begun goes on without them when they are lost.
const HIDING = "erasure hides";
const LONG = "erasure deletes";

/** Waiting for the other run would take the place of a job that hides. */
const leftToLater = (): never => {
  throw new ServiceError("erasure_running", "another erasure deletes or counts: tried again later", {
    retryable: true,
  });
};

export type ErasureDeps = {
  readonly requests: Omit<RequestCompletion, "close">;
  readonly store: Omit<FoundNotedStore, "close">;
  readonly suppressions: Pick<SuppressionStore, "add" | "claimSecret">;
  readonly approval: Approval;
  readonly judgement: LatestJudgement;
  readonly hash: SubjectHash;
  readonly exclusive: Exclusive;
  readonly runHolders: Pick<RunHolders, "own" | "alive">;
};

/**
 * Hides what new requests are about from readers, and then, unless another run is at it, deletes what is hidden
 * as one batch: suppressions are stored, what was judged without them is refused, all rows under the collected keys are
 * deleted until none is left, readers of changes are told, and the requests are stripped of their subjects.
 * Each step may be repeated, and a second run at the same time does no harm.
 *
 * @throws ServiceError `erasure_running` (retryable) while another run deletes and the job is not done without it
 */
export const createErasure = (deps: ErasureDeps): JobHandler<ErasureData, ErasureResult> => {
  const { requests, store, judgement, exclusive, runHolders } = deps;
  const subjects = createRunSubjects(deps);
  const newRun = (runPrefix: string): string => heldRun(runPrefix, runHolders.own, randomUUID());
  const hide = createHiding({ requests, store, subjects, approval: deps.approval, judgement, newRun });

  const checkSecret = async (): Promise<void> => {
    if ((await deps.suppressions.claimSecret(deps.hash.ofSecret)) === deps.hash.ofSecret) return;
    throw new ServiceError(
      "suppression_secret",
      "SUPPRESSION_SECRET is not the one that the stored suppressions were made with: set that one",
    );
  };

  /** Begins a run with everything that is hidden, was found by writers, or is to be erased again. */
  const beginRun = async (runPrefix: string, { data, progress }: JobContext<ErasureData>) => {
    const { again } = data;
    // Each attempt has keys of its own under the prefix of the job; the last attempt removes them all.
    const runId = newRun(runPrefix);
    const erases = again?.dryRun !== true;
    if (erases) await subjects.note(runId, "running");
    const begun = await store.begin(runId, erases);
    await store.takeHidden(runId);
    let looked = { clients: 0, ids: 0, persons: 0 };
    if (again !== undefined) {
      const note = "looking for what was erased before";
      await progress({ done: 0, total: null, unit: "rounds", note });
      looked = await store.lookAgain(runId, Date.parse(again.since) * 1000, deps.hash.of);
    }
    const isEmpty = begun.requests + begun.foundEndUsers + begun.ids + looked.ids + looked.persons === 0;
    return { runId, begun, looked, isEmpty };
  };

  /** A run that ends removes the keys of dead ones; without keys, leftover rows would not be found. */
  const checkKeys = async (runId: string, begunWith: number): Promise<void> => {
    if ((await store.begunWith(runId)) < begunWith) throw disturbed("another erasure has ended this one");
  };

  const count = async (runPrefix: string, context: JobContext<ErasureData>): Promise<ErasureResult> => {
    const { runId, begun, looked } = await beginRun(runPrefix, context);
    const found = await store.collect(runId);
    const deleted = await store.remaining(runId);
    await checkKeys(runId, begun.named + looked.clients);
    await store.end(runPrefix, context.signal);
    const again = { dryRun: true, ids: looked.ids, persons: looked.persons };
    return { hidden: 0, requests: 0, held: 0, found, deleted: { ...deleted }, rounds: 0, again };
  };

  /** Deletes all that is hidden. */
  const remove = async (
    runPrefix: string,
    context: JobContext<ErasureData>,
  ): Promise<Omit<ErasureResult, "hidden" | "held">> => {
    const { signal } = context;
    const { again } = context.data;
    const deleted: Record<string, number> = {};
    let rounds = 0;
    let found = { conversations: 0, messages: 0, endUsers: 0 };
    const say = (note: string): Promise<void> =>
      context.progress({ done: rounds, total: null, unit: "rounds", note });
    const { runId, begun, looked, isEmpty } = await beginRun(runPrefix, context);

    const collect = async (): Promise<void> => {
      // Again when something was found that is not suppressed: writers did not know of it.
      for (let isNew = true; isNew; isNew = await subjects.suppress(runId)) {
        await subjects.suppress(runId);
        await say("waiting for what was judged without the suppressions");
        await judgement.required(signal);
        await say("looking for records");
        found = await store.collect(runId);
        await store.hide(runId);
        await requests.noteHidden(runId);
      }
    };
    const erase = async (): Promise<void> => {
      for (;;) {
        signal.throwIfAborted();
        const remaining = await store.remaining(runId);
        const tables = Object.keys(remaining).filter((table) => remaining[table] !== 0);
        if (tables.length === 0) return;
        if (rounds >= MAX_ROUNDS) {
          throw new ServiceError("erasure_incomplete", "records come back while they are deleted", {
            retryable: true,
          });
        }
        rounds += 1;
        await store.countRows(runId);
        await say("deleting");
        await store.erase(runId, tables, signal);
        for (const table of tables) deleted[table] = (deleted[table] ?? 0) + (remaining[table] ?? 0);
      }
    };
    if (!isEmpty) {
      await collect();
      await erase();
      await store.goneEverywhere(signal);
    }
    signal.throwIfAborted();
    await checkKeys(runId, begun.named + looked.clients);
    if (begun.foundEndUsers + begun.ids > 0) await store.settleFound(runId, signal);
    const left = await store.left(runHolders.alive);
    await store.tell(signal);
    await store.eraseKeys(runId, signal);
    await requests.complete(runId);
    await requests.scrub(signal);
    await store.unhide(signal);
    await store.end(runPrefix, signal, left);
    context.log.info({ requests: begun.requests, ...found, rounds }, "erased");
    return {
      requests: begun.requests,
      found,
      deleted,
      rounds,
      ...(again !== undefined && { again: { dryRun: false, ids: looked.ids, persons: looked.persons } }),
    };
  };

  return {
    type: erasureJob,
    run: async (context) => {
      const { signal, data } = context;
      await checkSecret();
      const runPrefix = `${context.id}/`;
      if (data.again?.dryRun === true) {
        const counted = await exclusive.unlessTaken(LONG, signal, () => count(runPrefix, context));
        return counted ?? leftToLater();
      }
      const { failed, ...hidden } = await exclusive.run(HIDING, signal, () => hide(runPrefix, context));
      const removed = await exclusive.unlessTaken(LONG, signal, () => remove(runPrefix, context));
      // The other run may fail, so each request keeps a job until it is carried out.
      if (removed === undefined && (data.again !== undefined || (await requests.isRunning(data))))
        return leftToLater();
      // The others' are hidden and removed all the same.
      for (const [clientId, error] of failed)
        if (data.clientId === null || data.clientId === clientId) throw error;
      return { requests: 0, deleted: {}, rounds: 0, ...hidden, ...removed };
    },
  };
};
