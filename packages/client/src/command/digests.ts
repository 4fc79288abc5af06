import { createHash } from "node:crypto";
import { KINDS, type ListName } from "../lists/kinds.ts";
import { wellFormed } from "../lists/json-parts.ts";

export const BUCKETS = 4_096;

export type Entry = { readonly id: string; readonly digest: string };

export const bucketOf = (id: string): number =>
  createHash("md5").update(id).digest().readUInt16BE(0) % BUCKETS;

/** Depends on values, not on formatting. */
export const entryOf = (record: unknown, list: ListName, fields: readonly string[] | null): Entry => {
  const values = record as Readonly<Record<string, unknown>>;
  const id = String(values[KINDS[list].id]);
  const kept =
    fields === null ? values : Object.fromEntries(fields.map((name) => [name, values[name] ?? null]));
  const { [KINDS[list].id]: _, ...others } = kept;
  return {
    id,
    digest: createHash("md5")
      .update(wellFormed(JSON.stringify(others)))
      .digest("base64"),
  };
};

/** Independent of the order of records. */
export type Sums = {
  add(entry: Entry): void;
  total(): number;
  checksum(): string;
  differencesTo(other: Sums): number[];
  bucket(at: number): string;
  count(at: number): number;
};

export const createSums = (): Sums => {
  const counts = new Uint32Array(BUCKETS);
  const sums = new BigUint64Array(BUCKETS);
  const bucket = (at: number): string => `${counts[at]}:${sums[at]}`;
  return {
    add: ({ id, digest }) => {
      const at = bucketOf(id);
      counts[at] = (counts[at] ?? 0) + 1;
      // Overflow wraps on purpose.
      sums[at] = (sums[at] ?? 0n) + createHash("md5").update(`${id}\n${digest}`).digest().readBigUInt64BE(0);
    },
    total: () => counts.reduce((sum, count) => sum + count, 0),
    checksum: () => createHash("md5").update(new Uint8Array(sums.buffer)).digest("hex"),
    differencesTo: (other) =>
      Array.from({ length: BUCKETS }, (_, at) => at).filter((at) => bucket(at) !== other.bucket(at)),
    bucket,
    count: (at) => counts[at] ?? 0,
  };
};
