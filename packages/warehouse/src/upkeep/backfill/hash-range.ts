/** Hashes of records, both ends inclusive; decimal texts, because they have 64 bits. */
export type HashRange = { readonly from: string; readonly to: string };

const ALL = 1n << 64n;

/** Cuts the hashes of all records into `count` ranges of equal length. */
export const hashRanges = (count: number): HashRange[] => {
  const at = (index: number): bigint => (ALL * BigInt(index)) / BigInt(count);
  return Array.from({ length: count }, (_, index) => ({
    from: String(at(index)),
    to: String(at(index + 1) - 1n),
  }));
};

/** SQL for the hash of a record, by which landing is ordered. */
export const recordHash = (id: string): string => `cityHash64(client_id, ${id})`;

/** SQL condition: the hash lies in the range of the parameters `hash_from` and `hash_to`. */
export const inRange = (hash: string): string =>
  `${hash} >= {hash_from:UInt64} AND ${hash} <= {hash_to:UInt64}`;

export const rangeParameters = ({ from, to }: HashRange): Readonly<Record<string, string>> => ({
  hash_from: from,
  hash_to: to,
});
