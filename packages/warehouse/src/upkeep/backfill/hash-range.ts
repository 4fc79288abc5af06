/** Both ends inclusive; decimal, because hashes have 64 bits. */
export type HashRange = { readonly from: string; readonly to: string };

const ALL = 1n << 64n;

export const hashRanges = (count: number): HashRange[] => {
  const at = (index: number): bigint => (ALL * BigInt(index)) / BigInt(count);
  return Array.from({ length: count }, (_, index) => ({
    from: String(at(index)),
    to: String(at(index + 1) - 1n),
  }));
};

export const recordHash = (id: string): string => `cityHash64(client_id, ${id})`;

export const inRange = (hash: string): string =>
  `${hash} >= {hash_from:UInt64} AND ${hash} <= {hash_to:UInt64}`;

export const rangeParameters = ({ from, to }: HashRange): Readonly<Record<string, string>> => ({
  hash_from: from,
  hash_to: to,
});
