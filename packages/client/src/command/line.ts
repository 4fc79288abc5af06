import { valueTexts } from "../lists/json-parts.ts";
import { KINDS, LISTS, type ListName } from "../lists/kinds.ts";
import { CopyError } from "./exit-code.ts";

const IDS = [...new Set(LISTS.map((list) => KINDS[list].id))];
const DELETED = ',"deleted":true,"deleted_at":"';
const ID = new RegExp(String.raw`^\{"(?:${IDS.join("|")})":("(?:[^"\\]|\\.)*")`);
const DELETION = new RegExp(`${ID.source}${DELETED}`);

type Identified = Partial<Record<(typeof IDS)[number], string>>;

/** For errors, which never quote a line. */
type Where = () => string;
const SOMEWHERE: Where = () => "a line of the copy";

/** @throws CopyError */
export const recordOf = (line: string, where: Where = SOMEWHERE): Identified => {
  const broken = (): CopyError => new CopyError(`${where()}, of ${line.length} characters, is no record`);
  let record: unknown;
  try {
    record = JSON.parse(line);
  } catch {
    throw broken();
  }
  if (typeof record !== "object" || record === null) throw broken();
  return record;
};

/** Relies on the id being first. @throws CopyError */
export const idOf = (line: string, where: Where = SOMEWHERE): string => {
  const [, id] = ID.exec(line) ?? [];
  // Such an id may hold an escape that JSON does not have.
  if (id !== undefined && !id.includes("\\")) return id.slice(1, -1);
  const record = recordOf(line, where);
  const found = IDS.map((name) => record[name]).find((one) => one != null);
  if (found === undefined) throw new CopyError(`${where()}, of ${line.length} characters, has no id`);
  return found;
};

export const isDeletion = (line: string): boolean => DELETION.test(line);

export const countDeletions = (bytes: Uint8Array): number => {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (!buffer.includes(DELETED)) return 0;
  return buffer.toString().split("\n").filter(isDeletion).length;
};

/** Values as written; deletions stay unchanged. */
export const selectFields = (line: string, list: ListName, fields: readonly string[]): string => {
  if (isDeletion(line)) return line;
  const values = valueTexts(line);
  const { id } = KINDS[list];
  const kept = [id, ...fields.filter((field) => field !== id)];
  return `{${kept.map((field) => `"${field}":${values.get(field) ?? "null"}`).join(",")}}`;
};
