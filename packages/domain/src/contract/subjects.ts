import type { ExportRecord } from "../kinds/export-record.ts";
import type { OwnColumn, SubjectType } from "../kinds/record-form.ts";
import { byEventType, RECORD_KINDS } from "../kinds/record-kinds.ts";
import { emailForm } from "./email-form.ts";

export const subjectOf = (kind: SubjectType, value: string): string =>
  `${kind}:${kind === "email" ? emailForm(value) : value}`;

const PERSONS = byEventType((kind) => {
  const { idNames, form } = RECORD_KINDS[kind];
  const columns: readonly OwnColumn<never>[] = form.columns;
  const places = columns.flatMap(({ person }, at) => (person === undefined ? [] : [{ person, at }]));
  return { idNames, places };
});

/** Includes words such as `bot`: no erasure request can name them. */
export const subjectsOf = (record: ExportRecord): string[] => {
  const { idNames, places } = PERSONS[record.type];
  const subjects = idNames === null ? [] : [subjectOf(idNames, record.id)];
  for (const { person, at } of places) {
    const value = record.columns[at];
    if (typeof value !== "string" || value === "") continue;
    const subject = subjectOf(person, value);
    if (!subjects.includes(subject)) subjects.push(subject);
  }
  return subjects;
};
