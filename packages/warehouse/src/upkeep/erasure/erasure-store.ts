import type { RunUpload } from "../../changes/deletion-entries.ts";
import type { Session } from "../../session/session.ts";
import { createDeletion } from "../deletion.ts";
import { createErasureCollection, type ErasureCollection } from "./collect.ts";
import { createErasureAgain, type ErasureAgainStore } from "./erase-again.ts";
import { createErasureDeletion, type ErasureDeletion } from "./erase.ts";
import { createErasureEnd, type ErasureEnd } from "./forget.ts";
import { createErasureRowCounts, type ErasureRowCounts } from "./row-counts.ts";

/** Finds and counts everything about persons, and deletes nothing. */
export type ErasurePreview = ErasureCollection & ErasureRowCounts & ErasureEnd;

/**
 * Finds and deletes everything about persons, by keys collected in a table, so that no query text, URL or
 * mutation contains an identifier of a person.
 *
 * @throws WarehouseError from every method
 */
export type ErasureStore = ErasurePreview & ErasureAgainStore & ErasureDeletion;

/** Settings of erasures. */
export const forErasures = (session: Session): Session =>
  session.with({
    timeoutMs: 1_800_000,
    settings: {
      async_insert: 0,
      insert_deduplicate: 0,
      // A projection would still show rows that are masked in its table.
      optimize_use_projections: 0,
    },
  });

/** @param deps.session of the user for jobs */
export const createErasurePreview = (deps: { readonly session: Session }): ErasurePreview => {
  const session = forErasures(deps.session);
  return {
    ...createErasureCollection({ session }),
    ...createErasureRowCounts({ session }),
    ...createErasureEnd({ session, deletion: createDeletion(deps) }),
  };
};

/** @param deps.session of the user for jobs */
export const createErasureStore = (deps: {
  readonly session: Session;
  readonly runUpload: RunUpload;
}): ErasureStore => {
  const session = forErasures(deps.session);
  const deletion = createDeletion(deps);
  const preview = createErasurePreview(deps);
  return {
    ...preview,
    ...createErasureAgain({ session, note: preview.note }),
    ...createErasureDeletion({ session, deletion, runUpload: deps.runUpload }),
  };
};
