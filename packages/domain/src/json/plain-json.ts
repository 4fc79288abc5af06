/** Index after each value; `NOT_PLAIN` for forms that programs rarely print, which are parsed. */

export const NOT_PLAIN = -1;

export type Pass = {
  readonly text: string;
  readonly hasEscapes: boolean;
  escape: number;
  loose: boolean;
};

const SPACE = 32;
export const QUOTE = 34;
const PLUS = 43;
const COMMA = 44;
const MINUS = 45;
const DOT = 46;
const SLASH = 47;
const ZERO = 48;
const NINE = 57;
const COLON = 58;
const CAPITAL_E = 69;
const OPEN_LIST = 91;
const CLOSE_LIST = 93;
const SMALL_E = 101;
const SMALL_N = 110;
const SMALL_T = 116;
const SMALL_U = 117;
const OPEN_OBJECT = 123;
const CLOSE_OBJECT = 125;

const MAX_LEVELS = 32;
/** Comparing more keys costs more than parsing. */
const MOST_KEYS = 64;

const CONTROL_OR_LINE_END = /[^ -\u0084\u0086-\u2027\u202a-\uffff]/;
const SHORT_ESCAPES = new Set(Array.from('"\\bfnrt', (char) => char.charCodeAt(0)));
const UNIT = /^[\da-fA-F]{4}/;
const PAIR = /^[dD][89abAB][\da-fA-F]{2}\\u[dD][c-fC-F][\da-fA-F]{2}/;
const HALF = /^[dD][89a-fA-F]/;

const escapeFrom = (text: string, start: number): number => {
  const at = text.indexOf("\\", start);
  return at === -1 ? text.length : at;
};

export function beginPass(text: string): Pass | null {
  if (CONTROL_OR_LINE_END.test(text) || !text.isWellFormed()) return null;
  const escape = escapeFrom(text, 0);
  return { text, hasEscapes: escape < text.length, escape, loose: false };
}

export function skipBlanks(pass: Pass, start: number): number {
  let at = start;
  while (pass.text.charCodeAt(at) === SPACE) {
    pass.loose = true;
    at += 1;
  }
  return at;
}

function afterEscape(pass: Pass, start: number): number {
  const code = pass.text.charCodeAt(start + 1);
  if (SHORT_ESCAPES.has(code)) return start + 2;
  pass.loose = true;
  if (code === SLASH) return start + 2;
  if (code !== SMALL_U) return NOT_PLAIN;
  const digits = pass.text.slice(start + 2, start + 12);
  if (PAIR.test(digits)) return start + 12;
  return UNIT.test(digits) && !HALF.test(digits) ? start + 6 : NOT_PLAIN;
}

export function plainString(pass: Pass, start: number): number {
  const { text } = pass;
  if (text.charCodeAt(start) !== QUOTE) return NOT_PLAIN;
  let end = text.indexOf('"', start + 1);
  while (end > pass.escape) {
    const at = afterEscape(pass, pass.escape);
    if (at === NOT_PLAIN) return NOT_PLAIN;
    pass.escape = escapeFrom(text, at);
    if (end < at) end = text.indexOf('"', at);
  }
  return end === -1 ? NOT_PLAIN : end + 1;
}

export function plainKey({ text, escape }: Pass, start: number): number {
  if (text.charCodeAt(start) !== QUOTE) return NOT_PLAIN;
  const end = text.indexOf('"', start + 1);
  return end === -1 || end > escape ? NOT_PLAIN : end + 1;
}

const isDigit = (code: number): boolean => code >= ZERO && code <= NINE;

function afterDigits(text: string, start: number): number {
  let at = start;
  while (isDigit(text.charCodeAt(at))) at += 1;
  return at === start ? NOT_PLAIN : at;
}

/** Shorter numbers without exponent fit into a double. */
const LONG_NUMBER = 300;

const isFiniteNumber = (text: string, start: number, end: number): boolean =>
  Number.isFinite(Number(text.slice(start, end)));

export function plainNumber({ text }: Pass, start: number): number {
  let at = text.charCodeAt(start) === MINUS ? start + 1 : start;
  at = text.charCodeAt(at) === ZERO ? at + 1 : afterDigits(text, at);
  if (at !== NOT_PLAIN && text.charCodeAt(at) === DOT) at = afterDigits(text, at + 1);
  if (at === NOT_PLAIN) return NOT_PLAIN;
  const code = text.charCodeAt(at);
  const hasExponent = code === CAPITAL_E || code === SMALL_E;
  if (!hasExponent && at - start < LONG_NUMBER) return at;
  if (hasExponent) {
    const sign = text.charCodeAt(at + 1);
    at = afterDigits(text, sign === PLUS || sign === MINUS ? at + 2 : at + 1);
  }
  return at !== NOT_PLAIN && isFiniteNumber(text, start, at) ? at : NOT_PLAIN;
}

const afterWord = ({ text }: Pass, start: number, word: string): number =>
  text.startsWith(word, start) ? start + word.length : NOT_PLAIN;

export const plainFlag = (pass: Pass, start: number): number =>
  afterWord(pass, start, pass.text.charCodeAt(start) === SMALL_T ? "true" : "false");

export const isNullAt = (text: string, start: number): boolean => text.charCodeAt(start) === SMALL_N;
export const plainNull = (pass: Pass, start: number): number => afterWord(pass, start, "null");

export function plainColon(pass: Pass, keyEnd: number): number {
  const at = skipBlanks(pass, keyEnd);
  return pass.text.charCodeAt(at) === COLON ? skipBlanks(pass, at + 1) : NOT_PLAIN;
}

function plainItems(pass: Pass, start: number, close: number, item: (start: number) => number): number {
  const { text } = pass;
  let at = skipBlanks(pass, start + 1);
  if (text.charCodeAt(at) === close) return at + 1;
  for (;;) {
    at = item(at);
    if (at === NOT_PLAIN) return NOT_PLAIN;
    at = skipBlanks(pass, at);
    const code = text.charCodeAt(at);
    if (code === close) return at + 1;
    if (code !== COMMA) return NOT_PLAIN;
    at = skipBlanks(pass, at + 1);
  }
}

export const plainMembers = (pass: Pass, start: number, member: (key: number) => number): number =>
  pass.text.charCodeAt(start) === OPEN_OBJECT ? plainItems(pass, start, CLOSE_OBJECT, member) : NOT_PLAIN;

export const plainList = (pass: Pass, start: number, item: (start: number) => number): number =>
  pass.text.charCodeAt(start) === OPEN_LIST ? plainItems(pass, start, CLOSE_LIST, item) : NOT_PLAIN;

export function plainObject(pass: Pass, start: number, levels = MAX_LEVELS): number {
  if (levels === 0) return NOT_PLAIN;
  const keys: string[] = [];
  return plainMembers(pass, start, (at) => {
    const keyEnd = plainKey(pass, at);
    if (keyEnd === NOT_PLAIN || keys.length === MOST_KEYS) return NOT_PLAIN;
    const key = pass.text.slice(at, keyEnd);
    if (keys.includes(key)) return NOT_PLAIN;
    keys.push(key);
    const value = plainColon(pass, keyEnd);
    return value === NOT_PLAIN ? NOT_PLAIN : plainValue(pass, value, levels - 1);
  });
}

export function plainValue(pass: Pass, start: number, levels = MAX_LEVELS): number {
  const code = pass.text.charCodeAt(start);
  if (code === QUOTE) return plainString(pass, start);
  if (code === OPEN_OBJECT) return plainObject(pass, start, levels);
  if (code === OPEN_LIST) {
    if (levels === 0) return NOT_PLAIN;
    return plainList(pass, start, (at) => plainValue(pass, at, levels - 1));
  }
  if (code === SMALL_N) return plainNull(pass, start);
  return code === MINUS || isDigit(code) ? plainNumber(pass, start) : plainFlag(pass, start);
}
