import { randomUUID } from "node:crypto";
import { byList, type Micros } from "@conversation-export/domain";
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
import type {
  DeletingRun,
  ErasureRun,
  ErasureStore,
  RequestCompletion,
  SuppressionStore,
} from "@conversation-export/warehouse";
import type { Approval } from "./approval.ts";
import { createHiding } from "./hiding.ts";
import { createRunSubjects } from "./run-subjects.ts";
import type { LatestJudgement } from "./latest-judgement.ts";

const MAX_ROUNDS = 10;
// These locks only spare work: a run that loses one goes on.
const HIDING = "erasure hides";
const LONG = "erasure deletes";

/** Waiting would take the place of a job that hides. */
const leftToLater = (): never => {
  throw new ServiceError("erasure_running", "another erasure deletes or counts: tried again later", {
    retryable: true,
  });
};

export type ErasureDeps = {
  readonly requests: RequestCompletion;
  readonly store: ErasureStore;
  readonly suppressions: Pick<SuppressionStore, "add" | "lookUp" | "claimSecret">;
  readonly approval: Approval;
  readonly judgement: LatestJudgement;
  readonly hash: SubjectHash;
  readonly exclusive: Exclusive;
};

/**
 * Each step may be repeated, also by a second run at the same time; their order: docs/internals.md, Erasures.
 * @throws ServiceError `erasure_running` (retryable)
 */
export const createErasure = (deps: ErasureDeps): JobHandler<ErasureData, ErasureResult> => {
  const { requests, store, judgement, exclusive } = deps;
  const subjects = createRunSubjects(deps);
  const hide = createHiding({ requests, store, subjects, approval: deps.approval, judgement });

  const checkSecret = async (): Promise<void> => {
    if ((await deps.suppressions.claimSecret(deps.hash.ofSecret)) === deps.hash.ofSecret) return;
    throw new ServiceError(
      "suppression_secret",
      "SUPPRESSION_SECRET is not the one that the stored suppressions were made with: set that one",
    );
  };

  /** With all that is hidden, found by writers, or to be erased again. */
  const beginRun = async ({ id, data: { again }, progress }: JobContext<ErasureData>) => {
    const run: ErasureRun = { id: `${id}/${randomUUID()}`, erases: again?.dryRun !== true };
    if (run.erases) await subjects.note(run, "running");
    let looked = { ids: 0, persons: 0 };
    if (again !== undefined) {
      const note = "looking for what was erased before";
      await progress({ done: 0, total: null, unit: "rounds", note });
      looked = await store.lookAgain(run, Date.parse(again.since) * 1000, deps.hash.of);
    }
    return { run, looked, begun: await store.begin(run) };
  };

  const count = async (context: JobContext<ErasureData>): Promise<ErasureResult> => {
    const { run, looked } = await beginRun(context);
    await store.collect(run);
    const found = await store.count(run);
    const deleted = { ...(await store.remaining(run)) };
    await store.forget(run, context.signal);
    return { hidden: 0, requests: 0, held: 0, found, deleted, rounds: 0, again: { dryRun: true, ...looked } };
  };

  const remove = async (
    context: JobContext<ErasureData>,
  ): Promise<Omit<ErasureResult, "hidden" | "held">> => {
    const { signal } = context;
    const deleted: Record<string, number> = {};
    let rounds = 0;
    let found: ErasureResult["found"] = byList(() => 0);
    const say = (note: string): Promise<void> =>
      context.progress({ done: rounds, total: null, unit: "rounds", note });
    const { run, begun, looked } = await beginRun(context);

    const collect = async (): Promise<Micros> => {
      let settled: Micros;
      await subjects.suppress(run);
      do {
        await say("waiting for what was judged without the suppressions");
        settled = await judgement.required(signal);
        await say("looking for records");
        await store.collect(run);
        found = await store.count(run);
        await requests.noteHidden(run);
        // Again for what writers did not know of.
      } while (await subjects.suppress(run));
      return settled;
    };
    const erase = async (first: Micros): Promise<void> => {
      let settled = first;
      for (;;) {
        signal.throwIfAborted();
        const remaining = await store.remaining(run);
        const tables = Object.keys(remaining).filter((table) => remaining[table] !== 0);
        if (tables.length === 0) return;
        if (rounds >= MAX_ROUNDS) {
          throw new ServiceError("erasure_incomplete", "records come back while they are deleted", {
            retryable: true,
          });
        }
        // A stamp may be ahead of the clock: its entries go in a later round.
        if (rounds > 0) settled = await judgement.required(signal);
        rounds += 1;
        const deleting: DeletingRun = { ...run, settled };
        await store.countRows(deleting);
        await say("deleting");
        await store.erase(deleting, tables, signal);
        for (const table of tables) deleted[table] = (deleted[table] ?? 0) + (remaining[table] ?? 0);
      }
    };
    if (begun.requests + begun.found + begun.again > 0) {
      await erase(await collect());
      await store.goneEverywhere(signal);
      signal.throwIfAborted();
      if (begun.found > 0) await store.settleFound(run, signal);
      await store.publish(run, signal);
      await store.eraseKeys(run, signal);
      await requests.complete(run);
    }
    await requests.scrub(signal);
    await store.forget(run, signal);
    context.log.info({ requests: begun.requests, ...found, rounds }, "erased");
    return {
      requests: begun.requests,
      found,
      deleted,
      rounds,
      ...(context.data.again !== undefined && { again: { dryRun: false, ...looked } }),
    };
  };

  return {
    type: erasureJob,
    run: async (context) => {
      const { signal, data } = context;
      await checkSecret();
      if (data.again?.dryRun === true) {
        const counted = await exclusive.unlessTaken(LONG, signal, () => count(context));
        return counted ?? leftToLater();
      }
      const { failed, ...hidden } = await exclusive.run(HIDING, signal, () => hide(context));
      const removed = await exclusive.unlessTaken(LONG, signal, () => remove(context));
      // The other run may fail, so each request keeps a job.
      if (removed === undefined && (data.again !== undefined || (await requests.isRunning(data))))
        return leftToLater();
      // Other clients' are removed all the same.
      for (const [clientId, error] of failed)
        if (data.clientId === null || data.clientId === clientId) throw error;
      return { requests: 0, deleted: {}, rounds: 0, ...hidden, ...removed };
    },
  };
};
