/** Control, format and surrogate characters, line ends. */
const HIDDEN = /[\p{C}\p{Zl}\p{Zp}]/gu;

const escaped = (char: string): string =>
  [...Array(char.length).keys()]
    .map((at) => `\\u${char.charCodeAt(at).toString(16).padStart(4, "0")}`)
    .join("");

/** Escapes hidden characters as JSON does; cuts after `max`. */
export const visibleText = (text: string, max = Infinity): string => {
  const cut = text.length > max ? `${text.slice(0, max)}… (${text.length} characters)` : text;
  return cut.replace(HIDDEN, escaped);
};
