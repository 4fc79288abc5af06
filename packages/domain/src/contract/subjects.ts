import { emailForm } from "./email-form.ts";
import type { ExportRecord } from "../record/export-record.ts";
import { RECORD_KINDS } from "../record/record-kinds.ts";

/** An identifier of a person as one text: its kind and its value. */
export const subjectOf = (kind: "chatter_id" | "end_user_id" | "email", value: string): string =>
  `${kind}:${kind === "email" ? emailForm(value) : value}`;

/**
 * Every identifier of a person in a record; sender and recipient unless they name an agent, the bot or the
 * platform (section 2.2).
 */
export const subjectsOf = (record: ExportRecord): string[] => {
  const subjects: string[] = [];
  const note = (kind: Parameters<typeof subjectOf>[0], value: string): void => {
    if (value === "") return;
    const subject = subjectOf(kind, value);
    if (!subjects.includes(subject)) subjects.push(subject);
  };
  switch (record.type) {
    case RECORD_KINDS.conversation.type:
      note("chatter_id", record.columns.chatterId);
      note("end_user_id", record.columns.endUserId);
      break;
    case RECORD_KINDS.message.type:
      note("chatter_id", record.columns.chatterId);
      note("chatter_id", record.columns.sender);
      note("chatter_id", record.columns.recipient);
      break;
    case RECORD_KINDS.end_user.type:
      note("end_user_id", record.id);
      note("email", record.email);
      break;
  }
  return subjects;
};
