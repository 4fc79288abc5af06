import { type ErasureResult, type JobContext } from "@conversation-export/queue";
import { type ErasureStore, isLimitError, type RequestCompletion } from "@conversation-export/warehouse";
import type { Approval, Screening } from "./approval.ts";
import { disturbed } from "./disturbed.ts";
import type { RunSubjects } from "./run-subjects.ts";
import type { LatestJudgement } from "./latest-judgement.ts";

export type HidingDeps = {
  readonly requests: Pick<RequestCompletion, "waitingClients" | "begin" | "noteHidden">;
  readonly store: Pick<ErasureStore, "collect" | "hide" | "end">;
  readonly subjects: RunSubjects;
  readonly approval: Approval;
  readonly judgement: Pick<LatestJudgement, "tell">;
  /** Names a run of this process that begins with a prefix. */
  readonly newRun: (runPrefix: string) => string;
};

type Counts = Pick<ErasureResult, "hidden" | "held" | "found">;
type Hidden = Counts & {
  /** Errors of clients whose requests are more than ClickHouse can look for. */
  readonly failed: ReadonlyMap<string, unknown>;
};

/**
 * Hides what the new requests are about from readers, but for those that have to wait for an operator. They are
 * `running` then. One client at a time, so that none has to wait for what another asks for.
 */
export type Hiding = (
  runPrefix: string,
  context: Pick<JobContext<unknown>, "signal" | "progress">,
) => Promise<Hidden>;

const NONE: Counts = { hidden: 0, held: 0, found: { conversations: 0, messages: 0, endUsers: 0 } };

const sum = (one: Counts, other: Counts): Counts => ({
  hidden: one.hidden + other.hidden,
  held: one.held + other.held,
  found: {
    conversations: one.found.conversations + other.found.conversations,
    messages: one.found.messages + other.found.messages,
    endUsers: one.found.endUsers + other.found.endUsers,
  },
});

export const createHiding = (deps: HidingDeps): Hiding => {
  const { requests, store, subjects, judgement } = deps;

  /** Begins the requests of a run, which can be neither refused nor held from then on, and hides them. */
  const begin = async (runId: string, noted: number): Promise<void> => {
    // Neither all, when an operator has refused one; nor any, when another run has removed the keys of this one.
    if ((await requests.begin(runId)) < noted)
      throw disturbed("another run or an operator has decided about its requests meanwhile");
    await store.hide(runId);
    if ((await requests.noteHidden(runId)) < noted)
      throw disturbed("another run has carried out its requests meanwhile");
    await subjects.suppressHidden(runId);
    await judgement.tell();
  };

  const hideOf = async (
    clientId: string,
    runPrefix: string,
    { screening, signal }: { readonly screening: Screening; readonly signal: AbortSignal },
  ): Promise<Counts> => {
    for (let held = 0; ; ) {
      const runId = deps.newRun(runPrefix);
      const noted = await subjects.note(runId, { clientId }, screening.isLeftOut);
      if (noted === 0) return { ...NONE, held };
      const found = await store.collect(runId);
      const more = await screening.hold(runId);
      const isScreened = more.held + more.leftOut === 0;
      if (isScreened) await begin(runId, noted);
      // Not of earlier attempts, whose deletions readers may still have to be told of.
      await store.end(runId, signal);
      if (isScreened) return { hidden: noted, held, found };
      held += more.held;
    }
  };

  return async (runPrefix, { signal, progress }) => {
    const screening = deps.approval(signal);
    const failed = new Map<string, unknown>();
    let counts = NONE;
    const clients = await requests.waitingClients();
    for (const [done, clientId] of clients.entries()) {
      signal.throwIfAborted();
      await progress({ done, total: clients.length, unit: "clients", note: "looking for records to hide" });
      try {
        counts = sum(counts, await hideOf(clientId, runPrefix, { screening, signal }));
      } catch (error) {
        if (!isLimitError(error)) throw error;
        failed.set(clientId, error);
      }
    }
    return { ...counts, failed };
  };
};
