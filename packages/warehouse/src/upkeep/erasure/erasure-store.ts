import type { RunUpload } from "../../changes/deletion-entries.ts";
import type { Session } from "../../session/session.ts";
import { createDeletion } from "../deletion.ts";
import { createErasureCollection, type ErasureCollection } from "./collect.ts";
import { createErasureAgain, type ErasureAgainStore } from "./erase-again.ts";
import { createErasureDeletion, type ErasureDeletion } from "./erase.ts";

/**
 * Finds and deletes everything about persons, by keys collected in a table, so that no query text, URL or
 * mutation contains an identifier of a person.
 *
 * @throws WarehouseError from every method
 */
export type ErasureStore = ErasureCollection & ErasureAgainStore & ErasureDeletion;

/** @param deps.session of the user for jobs */
export const createErasureStore = (deps: {
  readonly session: Session;
  readonly runUpload: RunUpload;
}): ErasureStore => {
  const session = deps.session.with({
    timeoutMs: 1_800_000,
    settings: {
      async_insert: 0,
      insert_deduplicate: 0,
      // A projection would still show rows that are masked in its table.
      optimize_use_projections: 0,
    },
  });
  return {
    ...createErasureCollection({ session }),
    ...createErasureAgain({ session }),
    ...createErasureDeletion({ session, deletion: createDeletion(deps), runUpload: deps.runUpload }),
  };
};
