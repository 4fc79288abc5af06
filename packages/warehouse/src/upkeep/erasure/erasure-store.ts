import type { RunUpload } from "../../changes/deletion-entries.ts";
import type { Session } from "../../session/session.ts";
import { createDeletion, NO_PROJECTIONS } from "../deletion.ts";
import { createErasureCollection } from "./collect.ts";
import { createErasureAgain } from "./erase-again.ts";
import { createErasureDeletion } from "./erase.ts";
import { createErasureEnd } from "./forget.ts";
import { createErasureRowCounts } from "./row-counts.ts";

/** By keys in a table: no query text, URL or mutation names a person. @throws WarehouseError */
export type ErasureStore = ReturnType<typeof createErasureStore>;

export const forErasures = (session: Session): Session =>
  session.with({
    timeoutMs: 1_800_000,
    settings: { ...NO_PROJECTIONS, async_insert: 0, insert_deduplicate: 0 },
  });

/** Deletes nothing. */
export const createErasurePreview = (deps: { readonly session: Session }) => {
  const session = forErasures(deps.session);
  return {
    ...createErasureCollection({ session }),
    ...createErasureRowCounts({ session }),
    ...createErasureEnd({ session, deletion: createDeletion(deps) }),
  };
};

export const createErasureStore = (deps: { readonly session: Session; readonly runUpload: RunUpload }) => {
  const session = forErasures(deps.session);
  const deletion = createDeletion(deps);
  const preview = createErasurePreview(deps);
  return {
    ...preview,
    ...createErasureAgain({ session, note: preview.note }),
    ...createErasureDeletion({ session, deletion, runUpload: deps.runUpload }),
  };
};
