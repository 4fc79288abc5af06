import { formatTimestamp } from "../event/timestamp.ts";
import { END_USER_FIELDS } from "./record-fields.ts";
import type { RecordForm } from "./record-form.ts";
import { RECORD_KINDS } from "./record-kinds.ts";
import { fieldGroup } from "./render.ts";
import { type EndUserData, endUserSchema } from "./schemas.ts";

const RECORD = fieldGroup(END_USER_FIELDS, endUserSchema);
const NOTHING_UNUSUAL: readonly string[] = [];

function externalIdsOf(profile: EndUserData["profile"]): string[] {
  const ids: string[] = [];
  for (const value of Object.values(profile?.system_properties ?? {})) {
    if (typeof value === "string" || typeof value === "number") ids.push(String(value));
  }
  return ids;
}

/** An end user (specification, section 2.5). */
export const endUserForm: RecordForm<EndUserData> = {
  schema: endUserSchema,
  fields: END_USER_FIELDS,
  reads: ["end_user_id", "profile", "created_at", "updated_at"],
  idOf: (data) => data.end_user_id,
  created: { name: "created_at", of: (data) => data.created_at },
  updated: { name: "updated_at", of: (data) => data.updated_at },
  finish(data, draft) {
    const dates = {
      created_at: formatTimestamp(draft.dateCreated),
      updated_at: formatTimestamp(draft.dateUpdated),
    };
    const record = {
      type: RECORD_KINDS.end_user.type,
      clientId: draft.clientId,
      id: draft.id,
      dateCreated: draft.dateCreated,
      dateUpdated: draft.dateUpdated,
      version: draft.version,
      record: `{${draft.render(RECORD, dates)}}`,
      externalIds: externalIdsOf(data.profile),
      email: data.profile?.email ?? "",
    };
    return { record, unusual: NOTHING_UNUSUAL };
  },
};
