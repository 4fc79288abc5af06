import { EMAIL_BLANKS } from "@conversation-export/domain";

/** What `emailForm` makes of an address, as SQL. */
export const emailFormSql = (column: string): string =>
  `replaceAll(lowerUTF8(replaceRegexpAll(${column}, '${EMAIL_BLANKS.replaceAll("\\", "\\\\")}', '')), 'ς', 'σ')`;
