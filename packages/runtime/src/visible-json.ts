/** What JSON leaves as it is: a terminal obeys it, it hides, or it ends a line for some readers. */
const RAW = /[\u007f-\u009f\p{Cf}\p{Zl}\p{Zp}]/gu;

/** The UTF-16 units of a text as escapes of JSON. */
export const escapesOf = (text: string): string =>
  text
    .split("")
    .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`)
    .join("");

/** The same JSON with an escape for each character that does not show: texts of others are in logs and errors. */
export const visibleJson = (json: string): string => json.replace(RAW, (char) => escapesOf(char));
