import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import {
  type ErasureData,
  erasureJob,
  type ErasureResult,
  type JobContext,
  type JobHandler,
} from "@conversation-export/queue";
import { ServiceError } from "@conversation-export/runtime";
import type { SubjectHash } from "@conversation-export/suppression";
import {
  type ErasureStore,
  type ErasureSubject,
  type RequestCompletion,
  subjectsOfRequest,
  type SuppressionStore,
} from "@conversation-export/warehouse";
import type { Approval, Screening } from "./approval.ts";
import type { WritersConfirmed } from "./writers-confirmed.ts";

const MAX_ROUNDS = 10;
const NONE_FOUND = { conversations: 0, messages: 0, endUsers: 0 };
/** Identifiers of one INSERT. */
const MAX_SUBJECTS = 5_000;

export type ErasureDeps = {
  readonly requests: Omit<RequestCompletion, "close">;
  readonly store: Omit<ErasureStore, "close">;
  readonly suppressions: Pick<SuppressionStore, "add" | "claimSecret">;
  readonly approval: Approval;
  readonly writers: WritersConfirmed;
  readonly hash: SubjectHash;
  /** The length of a writer's lease, ms. */
  readonly leaseMs: number;
  /** ms since the epoch. */
  readonly now: () => number;
};

/**
 * Erases the persons of all unfinished requests as one batch, but for those that have to wait for an
 * operator, in this order: suppressions are stored, every writer confirms them, all rows under the collected
 * keys are deleted until none is left, readers of changes are told, and the requests are stripped of their
 * subjects. Each step may be repeated, and a second run at the same time does no harm.
 */
export const createErasure = (deps: ErasureDeps): JobHandler<ErasureData, ErasureResult> => {
  const { requests, store, writers, now } = deps;

  const checkSecret = async (): Promise<void> => {
    if ((await deps.suppressions.claimSecret(deps.hash.ofSecret)) === deps.hash.ofSecret) return;
    throw new ServiceError(
      "suppression_secret",
      "SUPPRESSION_SECRET is not the one that the stored suppressions were made with: set that one",
    );
  };

  /** Adds the persons of all requests that may be carried out to a run, but for those left out. */
  const noteDue = async (runId: string, { isLeftOut }: Screening): Promise<void> => {
    let subjects: ErasureSubject[] = [];
    const note = async (): Promise<void> => {
      await store.note(runId, subjects);
      subjects = [];
    };
    await requests.due(async (some) => {
      for (const request of some) {
        if (isLeftOut(request.requestId)) continue;
        subjects.push(...subjectsOfRequest(request));
        if (subjects.length >= MAX_SUBJECTS) await note();
      }
    });
    await note();
  };

  /** Stores the suppressions that are missing. false: none was missing. */
  const suppress = async (runId: string): Promise<boolean> => {
    let added = false;
    await store.unhashed(runId, async (subjects) => {
      await deps.suppressions.add(
        subjects.map(({ clientId, subject, createdBefore, requestId }) => {
          const value = deps.hash.of(clientId, subject);
          return { clientId, kind: "subject", value, createdBefore, requestId };
        }),
      );
      await store.noteHashed(runId, subjects);
      added = true;
    });
    return (await store.suppressIds(runId)) > 0 || added;
  };

  /** Begins a run with everything that is to be erased now, and collects its keys. */
  const beginRun = async (
    runPrefix: string,
    { data, progress }: JobContext<ErasureData>,
    screening: Screening,
  ) => {
    const { again } = data;
    // Each attempt has keys of its own under the prefix of the job; the last attempt removes them all.
    const runId = `${runPrefix}${randomUUID()}`;
    if (again?.dryRun !== true) await noteDue(runId, screening);
    const begun = await store.begin(runId);
    let looked = { clients: 0, ids: 0, persons: 0 };
    const say = (note: string): Promise<void> => progress({ done: 0, total: null, unit: "rounds", note });
    if (again !== undefined) {
      await say("looking for what was erased before");
      looked = await store.lookAgain(runId, Date.parse(again.since) * 1000, deps.hash.of);
    }
    await say("looking for records");
    const isEmpty = begun.requests + begun.foundEndUsers + begun.ids + looked.ids + looked.persons === 0;
    const found = isEmpty ? NONE_FOUND : await store.collect(runId);
    return { runId, begun, looked, isEmpty, found };
  };

  /**
   * The same without the requests that have to wait for an operator or a later run; the others are `running`.
   */
  const beginApproved = async (runPrefix: string, context: JobContext<ErasureData>) => {
    let held = 0;
    const screening = deps.approval.screening(context.signal);
    for (;;) {
      const run = await beginRun(runPrefix, context, screening);
      if (run.begun.requests === 0) return { ...run, held };
      const more = await screening.hold(run.runId);
      if (more.held + more.leftOut === 0) {
        if ((await requests.begin(run.runId)) < run.begun.requests)
          throw disturbed("another run or an operator has decided about its requests meanwhile");
        return { ...run, held };
      }
      held += more.held;
      // Not of earlier attempts, whose deletions readers may still have to be told of.
      await store.end(run.runId, context.signal, false);
    }
  };

  return {
    type: erasureJob,
    run: async (context) => {
      const { signal, log } = context;
      await checkSecret();
      const { again } = context.data;
      const dryRun = again?.dryRun ?? false;
      const runPrefix = `${context.id}/`;
      const deleted: Record<string, number> = {};
      let rounds = 0;

      const say = (note: string): Promise<void> =>
        context.progress({ done: rounds, total: null, unit: "rounds", note });

      const { runId, begun, looked, isEmpty, held, ...first } = await beginApproved(runPrefix, context);
      let { found } = first;
      const resultOf = (): ErasureResult => ({
        requests: begun.requests,
        held,
        found,
        deleted,
        rounds,
        ...(again !== undefined && { again: { dryRun, ids: looked.ids, persons: looked.persons } }),
      });
      if (dryRun) {
        Object.assign(deleted, await store.remaining(runId));
        await store.end(runPrefix, signal, false);
        return resultOf();
      }

      const finish = async (): Promise<ErasureResult> => {
        signal.throwIfAborted();
        // A run that ends removes the keys of all others; without keys, leftover rows would not be found.
        if ((await store.begunWith(runId)) < begun.named + looked.clients) {
          throw disturbed("another erasure has ended this one");
        }
        if (begun.foundEndUsers + begun.ids > 0) await store.settleFound(runId, signal);
        await store.tell(signal);
        await store.eraseKeys(runId, signal);
        await requests.complete(runId);
        await requests.scrub(signal);
        await store.end(runPrefix, signal, true);
        log.info({ requests: begun.requests, ...found, rounds }, "erased");
        return resultOf();
      };
      if (isEmpty) return finish();

      let generation: number | null = null;
      let confirmedAt = 0;
      let final = false;
      for (let isFirst = true; ; isFirst = false) {
        signal.throwIfAborted();
        if (!isFirst) {
          await say("looking for records");
          found = await store.collect(runId);
        }
        if ((await suppress(runId)) || generation === null) {
          await say("waiting for the writers to confirm the suppressions");
          generation = await writers.announce(signal);
          confirmedAt = now();
          final = false;
          continue;
        }
        const remaining = await store.remaining(runId);
        if (sumOf(remaining) > 0) {
          if (rounds >= MAX_ROUNDS) {
            throw new ServiceError("erasure_incomplete", "records come back while they are deleted", {
              retryable: true,
            });
          }
          rounds += 1;
          await store.countRows(runId);
          await say("deleting");
          const tables = Object.keys(remaining).filter((table) => remaining[table] !== 0);
          await store.erase(runId, tables, signal);
          for (const table of tables) deleted[table] = (deleted[table] ?? 0) + (remaining[table] ?? 0);
          continue;
        }
        if (final) return finish();
        // An INSERT that its writer gave up may still be on its way, for a lease at the longest.
        await say("waiting for INSERTs that were given up");
        await sleep(Math.max(confirmedAt + deps.leaseMs - now(), 0), undefined, { signal });
        generation = await writers.confirmed(generation, signal);
        final = true;
      }
    },
  };
};

const disturbed = (message: string): ServiceError =>
  new ServiceError("erasure_disturbed", message, { retryable: true });

const sumOf = (rows: Readonly<Record<string, number>>): number =>
  Object.values(rows).reduce((sum, count) => sum + count, 0);
