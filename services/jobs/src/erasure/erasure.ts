import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { subjectOf } from "@conversation-export/domain";
import {
  type ErasureData,
  erasureJob,
  type ErasureResult,
  type JobHandler,
} from "@conversation-export/queue";
import { ServiceError } from "@conversation-export/runtime";
import type { SubjectHash } from "@conversation-export/suppression";
import type {
  DataSubjectRequest,
  ErasureStore,
  ErasureSubject,
  RequestCompletion,
  Suppression,
  SuppressionStore,
} from "@conversation-export/warehouse";
import type { WritersConfirmed } from "./writers-confirmed.ts";

const MAX_ROUNDS = 10;

export type ErasureDeps = {
  readonly requests: Omit<RequestCompletion, "close">;
  readonly store: Omit<ErasureStore, "close">;
  readonly suppressions: Pick<SuppressionStore, "add" | "claimSecret">;
  readonly writers: WritersConfirmed;
  readonly hash: SubjectHash;
  /** The length of a writer's lease, ms. */
  readonly leaseMs: number;
  /** ms since the epoch. */
  readonly now: () => number;
};

/**
 * Erases the persons of all unfinished requests as one batch, in this order: suppressions are stored, every
 * writer confirms them, all rows under the collected keys are deleted until none is left, readers of changes
 * are told, and the requests are stripped of their subjects. Each step may be repeated, and a second run at the same time does no harm.
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

  /** Stores the suppressions that are missing. false: none was missing. */
  const suppress = async (runId: string, written: Set<string>): Promise<boolean> => {
    const subjects = await store.subjects(runId);
    const byRequest = new Map<string, Suppression[]>();
    const add = (requestId: string, suppression: Suppression): void => {
      const list = byRequest.get(requestId) ?? [];
      list.push(suppression);
      byRequest.set(requestId, list);
    };
    for (const { clientId, subject, createdBefore, requestId } of subjects) {
      const value = deps.hash.of(clientId, subject);
      const name = `${clientId} ${value} ${createdBefore}`;
      if (written.has(name)) continue;
      written.add(name);
      add(requestId, { clientId, kind: "subject", value, createdBefore });
    }
    for (const [requestId, list] of byRequest) await deps.suppressions.add(list, requestId);
    return (await store.suppressIds(runId)) > 0 || byRequest.size > 0;
  };

  return {
    type: erasureJob,
    run: async (context) => {
      const { signal, log } = context;
      await checkSecret();
      const { again } = context.data;
      const dryRun = again?.dryRun ?? false;
      const open = dryRun ? [] : await requests.unfinished();
      // Each attempt has keys of its own under the prefix of the job; the last attempt removes them all.
      const runPrefix = `${context.id}/`;
      const runId = `${runPrefix}${randomUUID()}`;
      const subjects = open.flatMap(subjectsOfRequest);
      const named = new Set(subjects.map(({ clientId, subject }) => JSON.stringify([clientId, subject])))
        .size;
      const written = new Set<string>();
      const deleted: Record<string, number> = {};
      let found = { conversations: 0, messages: 0, endUsers: 0 };
      let rounds = 0;

      const say = (note: string): Promise<void> =>
        context.progress({ done: rounds, total: null, unit: "rounds", note });

      if (open.length > 0) await requests.begin(open);
      const rest = await store.begin(runId, subjects);
      let looked = { clients: 0, ids: 0, persons: 0 };
      if (again !== undefined) {
        await say("looking for what was erased before");
        looked = await store.lookAgain(runId, Date.parse(again.since) * 1000, deps.hash.of);
      }
      const resultOf = (): ErasureResult => ({
        requests: open.length,
        found,
        deleted,
        rounds,
        ...(again !== undefined && { again: { dryRun, ids: looked.ids, persons: looked.persons } }),
      });
      if (dryRun) {
        found = await store.collect(runId);
        Object.assign(deleted, await store.remaining(runId));
        await store.end(runPrefix, signal, false);
        return resultOf();
      }

      const finish = async (): Promise<ErasureResult> => {
        signal.throwIfAborted();
        // A run that ends removes the keys of all others; without keys, leftover rows would not be found.
        if ((await store.begunWith(runId)) < named + looked.clients) {
          throw new ServiceError("erasure_disturbed", "another erasure has ended this one", {
            retryable: true,
          });
        }
        if (rest.foundEndUsers + rest.ids > 0) await store.settleFound(runId, signal);
        await store.tell(signal);
        await store.eraseKeys(runId, signal);
        await requests.complete(open);
        await requests.scrub(signal);
        await store.end(runPrefix, signal, true);
        log.info({ requests: open.length, ...found, rounds }, "erased");
        return resultOf();
      };
      if (open.length + rest.foundEndUsers + rest.ids + looked.ids + looked.persons === 0) return finish();

      let generation: number | null = null;
      let confirmedAt = 0;
      let final = false;
      for (;;) {
        signal.throwIfAborted();
        await say("looking for records");
        found = await store.collect(runId);
        if ((await suppress(runId, written)) || generation === null) {
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

const subjectsOfRequest = (request: DataSubjectRequest): ErasureSubject[] => {
  const { clientId, requestId, subject } = request;
  const common = { clientId, requestId, createdBefore: request.receivedAt * 1000 };
  return [
    ...(subject.email === null ? [] : [subjectOf("email", subject.email)]),
    ...subject.identifiers.map(({ type, value }) => subjectOf(type, value)),
  ].map((text) => ({ ...common, subject: text }));
};

const sumOf = (rows: Readonly<Record<string, number>>): number =>
  Object.values(rows).reduce((sum, count) => sum + count, 0);
