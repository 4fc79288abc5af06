import type { RunUpload } from "../../changes/deletion-entries.ts";
import type { Session } from "../../session/session.ts";
import { createDeletion } from "../deletion.ts";
import { createErasureCollection, type ErasureCollection } from "./collect.ts";
import { createErasureAgain, type ErasureAgainStore } from "./erase-again.ts";
import { createErasureDeletion, type ErasureDeletion } from "./erase.ts";
import { createHiddenRecords, type HiddenRecords } from "./hidden-records.ts";
import { createErasureReach, type ErasureReach } from "./reach.ts";
import { createErasureRunKeys, type ErasureRunKeys } from "./run-keys.ts";

/** Finds and counts everything about persons, and deletes nothing. */
export type ErasurePreview = ErasureCollection & ErasureReach & ErasureRunKeys;

/**
 * Finds and deletes everything about persons, by keys collected in a table, so that no query text, URL or
 * mutation contains an identifier of a person.
 *
 * @throws WarehouseError from every method
 */
export type ErasureStore = ErasurePreview & ErasureAgainStore & ErasureDeletion & HiddenRecords;

const forErasures = (session: Session): Session =>
  session.with({
    timeoutMs: 1_800_000,
    settings: {
      async_insert: 0,
      insert_deduplicate: 0,
      // A projection would still show rows that are masked in its table.
      optimize_use_projections: 0,
    },
  });

/** @param deps.session of a user that may read records and write keys */
export const createErasurePreview = (deps: { readonly session: Session }): ErasurePreview => {
  const session = forErasures(deps.session);
  return {
    ...createErasureCollection({ session }),
    ...createErasureReach({ session }),
    ...createErasureRunKeys({ session }),
  };
};

/** @param deps.session of the user for jobs */
export const createErasureStore = (deps: {
  readonly session: Session;
  readonly runUpload: RunUpload;
}): ErasureStore => {
  const session = forErasures(deps.session);
  const deletion = createDeletion(deps);
  return {
    ...createErasurePreview(deps),
    ...createErasureAgain({ session }),
    ...createHiddenRecords({ session, deletion }),
    ...createErasureDeletion({ session, deletion, runUpload: deps.runUpload }),
  };
};
