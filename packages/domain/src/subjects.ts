import { emailForm } from "./email-form.ts";
import type { ExportRecord } from "./process-event.ts";

/** One person as a record names them: the kind and the value of an identifier in one text. */
export const subjectOf = (kind: "chatter_id" | "end_user_id" | "email", value: string): string =>
  `${kind}:${kind === "email" ? emailForm(value) : value}`;

/**
 * Whom a record is about: every identifier of a person that it carries. Sender and recipient of a message are the id of
 * the chatter when they are no name of an agent, the bot or the platform (section 2.2).
 */
export const subjectsOf = (record: ExportRecord): string[] => {
  const subjects: string[] = [];
  const note = (kind: Parameters<typeof subjectOf>[0], value: string): void => {
    if (value === "") return;
    const subject = subjectOf(kind, value);
    if (!subjects.includes(subject)) subjects.push(subject);
  };
  switch (record.type) {
    case "conversation.exported":
      note("chatter_id", record.columns.chatterId);
      note("end_user_id", record.columns.endUserId);
      break;
    case "message.exported":
      note("chatter_id", record.columns.chatterId);
      note("chatter_id", record.columns.sender);
      note("chatter_id", record.columns.recipient);
      break;
    case "end_user.exported":
      note("end_user_id", record.id);
      note("email", record.email);
      break;
  }
  return subjects;
};
