import { randomUUID } from "node:crypto";
import { type ErasureResult, type JobContext } from "@conversation-export/queue";
import type { ErasureStore, RequestCompletion } from "@conversation-export/warehouse";
import type { Approval } from "./approval.ts";
import { disturbed } from "./disturbed.ts";
import type { RunSubjects } from "./run-subjects.ts";

export type HidingDeps = {
  readonly requests: Pick<RequestCompletion, "begin">;
  readonly store: Pick<ErasureStore, "begunWith" | "collect" | "hide" | "unhide" | "end">;
  readonly subjects: RunSubjects;
  readonly approval: Approval;
};

type Hidden = Pick<ErasureResult, "hidden" | "held" | "found">;

/**
 * Hides what the new requests are about from readers, but for those that have to wait for an operator. They are
 * `running` then.
 */
export type Hiding = (
  runPrefix: string,
  context: Pick<JobContext<unknown>, "signal" | "progress">,
) => Promise<Hidden>;

const NONE_FOUND = { conversations: 0, messages: 0, endUsers: 0 };

export const createHiding = (deps: HidingDeps): Hiding => {
  const { requests, store, subjects } = deps;
  return async (runPrefix, { signal, progress }) => {
    const screening = deps.approval.screening(signal);
    for (let held = 0; ; ) {
      const runId = `${runPrefix}${randomUUID()}`;
      const noted = await subjects.note(runId, "new", screening.isLeftOut);
      if (noted === 0) return { hidden: 0, held, found: NONE_FOUND };
      await progress({ done: 0, total: null, unit: "rounds", note: "looking for records" });
      const found = await store.collect(runId);
      const more = await screening.hold(runId);
      const isScreened = more.held + more.leftOut === 0;
      if (isScreened) {
        await store.hide(runId);
        if ((await requests.begin(runId)) < noted) {
          await store.unhide(signal);
          throw disturbed("another run or an operator has decided about its requests meanwhile");
        }
        // At once, so that little is written that is only to be deleted again.
        await subjects.suppress(runId);
      }
      // Not of earlier attempts, whose deletions readers may still have to be told of.
      await store.end(runId, signal, false);
      if (isScreened) return { hidden: noted, held, found };
      held += more.held;
    }
  };
};
