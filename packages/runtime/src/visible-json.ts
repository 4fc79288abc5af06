/** Characters that a terminal obeys, that do not show, or that end a line for some readers. */
const RAW = /[\u007f-\u009f\p{Cf}\p{Zl}\p{Zp}]/gu;

export const escapesOf = (text: string): string =>
  text
    .split("")
    .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`)
    .join("");

export const visibleJson = (json: string): string => json.replace(RAW, (char) => escapesOf(char));
