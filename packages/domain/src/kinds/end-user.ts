import { z } from "zod";
import { formatTimestamp } from "../event/timestamp.ts";
import { memberTexts } from "../json/json-text.ts";
import { publicSchema } from "../record/public-schemas.ts";
import { fieldsOf } from "../record/record-fields.ts";
import { fieldGroup } from "../record/render.ts";
import { date, identifier, instant, text, variables } from "./field-schemas.ts";
import type { RecordForm } from "./record-form.ts";
import type { KindFacts } from "./record-kind.ts";

const profileSchema = z.object({
  first_name: text.describe("First name"),
  last_name: text.describe("Last name"),
  display_name: text.describe("Name to show"),
  avatar: text.describe("Address of a picture"),
  email: text.describe("E-mail address"),
  language: text.describe("Locale, such as en-US"),
  metadata: variables.describe("Values of the client's own: text, numbers and truth values"),
  system_properties: variables.describe("IDs of the person in other systems"),
});

/** Specification 2.5. */
const schema = z.object({
  end_user_id: identifier.describe("ID of the end user"),
  profile: profileSchema.nullish().describe("What is known about the person"),
  created_at: instant.describe("When the profile was made"),
  updated_at: date.describe("When it last changed"),
});

type EndUserData = z.infer<typeof schema>;

const FIELDS = fieldsOf(schema);
const RECORD = fieldGroup(FIELDS, schema);

const textAt = (text: string, names: readonly string[]): string =>
  names.reduce((within, name) => memberTexts(within).get(name) ?? "", text);

/** `record`: rendered, with all digits of numbers. */
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

const form: RecordForm<EndUserData> = {
  schema,
  fields: FIELDS,
  reads: ["end_user_id", "profile", "created_at", "updated_at"],
  id: { name: "end_user_id", of: (data) => data.end_user_id },
  conversationOf: null,
  created: { name: "created_at", of: (data) => data.created_at },
  updated: { name: "updated_at", of: (data) => data.updated_at },
  columns: [
    { name: "email", type: "text", of: ({ profile }) => profile?.email, person: "email" },
    { name: "external_ids", type: "texts", of: ({ profile }, record) => externalIdsOf(profile, record) },
  ],
  finish(_, draft) {
    const dates = {
      created_at: formatTimestamp(draft.dateCreated),
      updated_at: formatTimestamp(draft.dateUpdated),
    };
    return { beforeUpload: `{${draft.render(RECORD, dates)}}`, afterUpload: null };
  },
};

export const endUser = {
  type: "end_user.exported",
  list: "end_users",
  scope: "end_users",
  number: 3,
  code: null,
  tables: [{ name: "end_users", id: "end_user_id", keyDate: null, created: "date_created" }],
  texts: ["record"],
  idNames: "end_user_id",
  expiresBy: "dateUpdated",
  form,
  public: publicSchema(FIELDS, schema),
} as const satisfies KindFacts;
