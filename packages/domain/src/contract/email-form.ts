/** For JavaScript (flag u) and RE2. */
const BLANKS = [
  ["09", "0D"],
  ["20", "20"],
  ["85", "85"],
  ["A0", "A0"],
  ["1680", "1680"],
  ["180E", "180E"],
  ["2000", "200D"],
  ["2028", "2029"],
  ["202F", "202F"],
  ["205F", "2060"],
  ["3000", "3000"],
  ["FEFF", "FEFF"],
] as const;

const classOf = (character: "u" | "x"): string =>
  BLANKS.map(([from, to]) => `\\${character}{${from}}-\\${character}{${to}}`).join("");

const AROUND = new RegExp(`^[${classOf("u")}]+|[${classOf("u")}]+$`, "gu");

export const emailForm = (text: string): string =>
  // The only character whose lower case depends on its neighbours.
  text.replace(AROUND, "").toLowerCase().replaceAll("ς", "σ");

export const EMAIL_BLANKS = `^[${classOf("x")}]+|[${classOf("x")}]+$`;
