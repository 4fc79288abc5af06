/** Control characters, formats such as marks of direction, halves of surrogate pairs, and ends of lines. */
const HIDDEN = /[\p{C}\p{Zl}\p{Zp}]/gu;

const escaped = (char: string): string =>
  [...Array(char.length).keys()]
    .map((at) => `\\u${char.charCodeAt(at).toString(16).padStart(4, "0")}`)
    .join("");

/**
 * A text of others as it may be in an error, a log or on a terminal: one line in which every character shows.
 * Others are escaped as in JSON, of which it keeps the meaning; more than `max` characters are cut.
 */
export const visibleText = (text: string, max = Infinity): string => {
  const cut = text.length > max ? `${text.slice(0, max)}… (${text.length} characters)` : text;
  return cut.replace(HIDDEN, escaped);
};
