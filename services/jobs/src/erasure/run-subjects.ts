import type { SubjectHash } from "@conversation-export/suppression";
import {
  type ErasureStore,
  type ErasureSubject,
  type RequestCompletion,
  subjectsOfRequest,
  type SuppressionStore,
} from "@conversation-export/warehouse";

/** Identifiers of one INSERT. */
const MAX_SUBJECTS = 5_000;

type Which = Parameters<RequestCompletion["due"]>[0];

/** The persons of a run. */
export type RunSubjects = {
  /** Adds the persons of requests to a run, as `due` has them. Returns the number of requests. */
  note(runId: string, which: Which, isLeftOut?: (requestId: string) => boolean): Promise<number>;
  /**
   * Stores the suppressions of the run's persons and of the records that it has collected, as far as they are
   * missing. false: none was missing. Readers of changes are told of the records when a run ends.
   */
  suppress(runId: string): Promise<boolean>;
  /** As `suppress`, once for a run that only hides: readers are not told of its records. */
  suppressHidden(runId: string): Promise<void>;
};

export const createRunSubjects = (deps: {
  readonly requests: Pick<RequestCompletion, "due">;
  readonly store: Pick<ErasureStore, "note" | "unhashed" | "noteHashed" | "suppressIds">;
  readonly suppressions: Pick<SuppressionStore, "add">;
  readonly hash: SubjectHash;
}): RunSubjects => {
  const { requests, store, suppressions, hash } = deps;
  const add = (subjects: readonly ErasureSubject[]): Promise<void> =>
    suppressions.add(
      subjects.map(({ clientId, subject, createdBefore, requestId }) => {
        const value = hash.of(clientId, subject);
        return { clientId, kind: "subject", value, createdBefore, requestId };
      }),
    );
  return {
    note: async (runId, which, isLeftOut = () => false) => {
      let noted = 0;
      let subjects: ErasureSubject[] = [];
      const flush = async (): Promise<void> => {
        if (subjects.length > 0) await store.note(runId, subjects);
        subjects = [];
      };
      await requests.due(which, async (some) => {
        for (const request of some) {
          if (isLeftOut(request.requestId)) continue;
          noted += 1;
          subjects.push(...subjectsOfRequest(request));
          if (subjects.length >= MAX_SUBJECTS) await flush();
        }
      });
      await flush();
      return noted;
    },
    suppress: async (runId) => {
      let added = false;
      await store.unhashed(runId, async (subjects) => {
        await add(subjects);
        await store.noteHashed(runId, subjects);
        added = true;
      });
      return (await store.suppressIds(runId)) > 0 || added;
    },
    suppressHidden: async (runId) => {
      await store.unhashed(runId, add);
      await store.suppressIds(runId);
    },
  };
};
