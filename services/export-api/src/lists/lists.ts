import {
  byDatedList,
  byList,
  type DatedList,
  KIND_NAMES,
  LEGACY_FIELDS,
  type LegacyList,
  RECORD_KINDS,
} from "@conversation-export/domain";
import { RECORDS } from "../openapi/record-examples.ts";

const capitalised = (word: string): string => word.charAt(0).toUpperCase() + word.slice(1);

const OF_KINDS = KIND_NAMES.map((kind) => {
  const { list, scope, form, public: record } = RECORD_KINDS[kind];
  const noun = list.split("_").map(capitalised).join("");
  return { list, kind, scope, noun, id: form.id.name, record, example: RECORDS[kind] };
});

export const LISTS = byList((list) => {
  const found = OF_KINDS.find((one) => one.list === list);
  if (found === undefined) throw new TypeError(`no kind fills ${list}`);
  return found;
});

export type WindowList = DatedList;
export const WINDOW_LISTS = Object.values(byDatedList((kind) => RECORD_KINDS[kind].list));
export const LEGACY_LISTS = Object.keys(LEGACY_FIELDS) as LegacyList[];
