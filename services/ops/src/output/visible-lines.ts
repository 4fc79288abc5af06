import { escapesOf } from "@conversation-export/runtime";

/** Control characters but ends of lines and tabs, formats such as marks of direction, halves of surrogate pairs. */
const HIDDEN = /[^\P{C}\n\t]|[\p{Zl}\p{Zp}]/gu;

/**
 * A text with words of others as it may stand on a terminal: every character shows, and none moves the cursor.
 * Others are escaped as in JSON, which keeps its meaning.
 */
export const visibleLines = (text: string): string => text.replace(HIDDEN, (hidden) => escapesOf(hidden));
