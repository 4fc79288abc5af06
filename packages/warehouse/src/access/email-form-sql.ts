import { EMAIL_BLANKS } from "@conversation-export/domain";

/** Must equal `emailForm`. */
export const emailFormSql = (column: string): string =>
  `replaceAll(lowerUTF8(replaceRegexpAll(${column}, '${EMAIL_BLANKS.replaceAll("\\", "\\\\")}', '')), 'ς', 'σ')`;
