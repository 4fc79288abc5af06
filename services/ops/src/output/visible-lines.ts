/** Control characters but ends of lines and tabs, formats such as marks of direction, halves of surrogate pairs. */
const HIDDEN = /[^\P{C}\n\t]|[\p{Zl}\p{Zp}]/gu;

/** The UTF-16 units of a text as escapes of JSON. */
export const escapesOf = (text: string): string =>
  text
    .split("")
    .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`)
    .join("");

/**
 * A text with words of others as it may stand on a terminal: every character shows, and none moves the cursor.
 * Others are escaped as in JSON, which keeps its meaning.
 */
export const visibleLines = (text: string): string => text.replace(HIDDEN, (hidden) => escapesOf(hidden));
