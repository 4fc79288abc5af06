import { createHash, randomBytes } from "node:crypto";
import { crc32 } from "node:zlib";

const ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const SECRET_BYTES = 32;
const SECRET_DIGITS = 43;
const CHECK_DIGITS = 6;
const SHAPE = new RegExp(`^cx_([0-9A-Za-z]{${SECRET_DIGITS}})_([0-9A-Za-z]{${CHECK_DIGITS}})$`);

const base62 = (value: bigint, digits: number): string => {
  let text = "";
  for (let rest = value; text.length < digits; rest /= 62n) text = ALPHABET.charAt(Number(rest % 62n)) + text;
  return text;
};

const checksumOf = (secret: string): string => base62(BigInt(crc32(secret)), CHECK_DIGITS);

const hashOf = (key: string): string => createHash("sha256").update(key).digest("hex");

/** Secret scanners and the service recognise a key by its prefix and checksum; only the hash is stored. */
export const createKey = (): { key: string; hash: string } => {
  const secret = base62(BigInt(`0x${randomBytes(SECRET_BYTES).toString("hex")}`), SECRET_DIGITS);
  const key = `cx_${secret}_${checksumOf(secret)}`;
  return { key, hash: hashOf(key) };
};

/** SHA-256 in hex; undefined: the text is no key. */
export const parseKey = (text: string): { hash: string } | undefined => {
  const match = SHAPE.exec(text);
  if (match === null || checksumOf(match[1] ?? "") !== match[2]) return undefined;
  return { hash: hashOf(text) };
};
