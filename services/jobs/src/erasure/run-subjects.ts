import type { SubjectHash } from "@conversation-export/suppression";
import {
  type ErasureRun,
  type ErasureStore,
  type ErasureSubject,
  type RequestCompletion,
  subjectsOfRequest,
  type SuppressionStore,
} from "@conversation-export/warehouse";

/** Per INSERT. */
const MAX_SUBJECTS = 5_000;

type Which = Parameters<RequestCompletion["due"]>[0];

export type RunSubjects = {
  note(run: ErasureRun, which: Which): Promise<number>;
  /** false: none was missing. */
  suppress(run: ErasureRun): Promise<boolean>;
};

export const createRunSubjects = (deps: {
  readonly requests: Pick<RequestCompletion, "due">;
  readonly store: Pick<ErasureStore, "note" | "persons" | "suppressIds">;
  readonly suppressions: Pick<SuppressionStore, "add" | "lookUp">;
  readonly hash: SubjectHash;
}): RunSubjects => {
  const { requests, store, suppressions, hash } = deps;

  const addMissing = async (subjects: readonly ErasureSubject[]): Promise<number> => {
    const all = subjects.map(({ clientId, subject, createdBefore, requestId }) => {
      const value = hash.of(clientId, subject);
      return { clientId, kind: "subject", value, createdBefore, requestId } as const;
    });
    const stored = await suppressions.lookUp(all);
    const missing = all.filter(({ createdBefore }, at) => (stored[at] ?? 0) < createdBefore);
    await suppressions.add(missing);
    return missing.length;
  };

  return {
    note: async (run, which) => {
      let noted = 0;
      let subjects: ErasureSubject[] = [];
      const flush = async (): Promise<void> => {
        await store.note(run, subjects);
        subjects = [];
      };
      await requests.due(which, async (some) => {
        noted += some.length;
        subjects.push(...some.flatMap(subjectsOfRequest));
        if (subjects.length >= MAX_SUBJECTS) await flush();
      });
      await flush();
      return noted;
    },
    suppress: async (run) => {
      let missing = 0;
      await store.persons(run, async (subjects) => {
        missing += await addMissing(subjects);
      });
      return missing + (await store.suppressIds(run)) > 0;
    },
  };
};
