import { memberTexts } from "../event/json-text.ts";
import { formatTimestamp } from "../event/timestamp.ts";
import { END_USER_FIELDS } from "./record-fields.ts";
import type { RecordForm } from "./record-form.ts";
import { RECORD_KINDS } from "./record-kinds.ts";
import { fieldGroup } from "./render.ts";
import { type EndUserData, endUserSchema } from "./schemas.ts";

const RECORD = fieldGroup(END_USER_FIELDS, endUserSchema);
const NOTHING_NONSTANDARD: readonly string[] = [];

/** The text of a member of an object, however deep. */
const textAt = (text: string, names: readonly string[]): string =>
  names.reduce((within, name) => memberTexts(within).get(name) ?? "", text);

/** @param record the rendered one: it has all digits of numbers */
function externalIdsOf(profile: EndUserData["profile"], record: string): string[] {
  const ids: string[] = [];
  for (const [name, value] of Object.entries(profile?.system_properties ?? {})) {
    if (typeof value === "string") ids.push(value);
    if (typeof value !== "number") continue;
    const isExact = Math.abs(value) <= Number.MAX_SAFE_INTEGER;
    ids.push(isExact ? String(value) : textAt(record, ["profile", "system_properties", name]));
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
    const rendered = `{${draft.render(RECORD, dates)}}`;
    const record = {
      type: RECORD_KINDS.end_user.type,
      clientId: draft.clientId,
      id: draft.id,
      dateCreated: draft.dateCreated,
      dateUpdated: draft.dateUpdated,
      version: draft.version,
      record: rendered,
      externalIds: externalIdsOf(data.profile, rendered),
      email: data.profile?.email ?? "",
    };
    return { record, nonstandard: NOTHING_NONSTANDARD };
  },
};
