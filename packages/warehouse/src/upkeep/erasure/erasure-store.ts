import type { RunUpload } from "../../changes/deletion-entries.ts";
import type { Session } from "../../session/session.ts";
import { createDeletion } from "../deletion.ts";
import { createErasureCollection, type ErasureCollection } from "./collect.ts";
import { createErasureAgain, type ErasureAgainStore } from "./erase-again.ts";
import { createErasureDeletion, type ErasureDeletion } from "./erase.ts";
import { createErasureEnd, type ErasureEnd } from "./forget.ts";
import { createErasureRowCounts, type ErasureRowCounts } from "./row-counts.ts";

/** Deletes nothing. */
export type ErasurePreview = ErasureCollection & ErasureRowCounts & ErasureEnd;

/** By keys in a table: no query text, URL or mutation names a person. @throws WarehouseError */
export type ErasureStore = ErasurePreview & ErasureAgainStore & ErasureDeletion;

export const forErasures = (session: Session): Session =>
  session.with({
    timeoutMs: 1_800_000,
    settings: {
      async_insert: 0,
      insert_deduplicate: 0,
      // A projection would still show masked rows.
      optimize_use_projections: 0,
    },
  });

export const createErasurePreview = (deps: { readonly session: Session }): ErasurePreview => {
  const session = forErasures(deps.session);
  return {
    ...createErasureCollection({ session }),
    ...createErasureRowCounts({ session }),
    ...createErasureEnd({ session, deletion: createDeletion(deps) }),
  };
};

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
