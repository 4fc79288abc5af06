import { closestMatch } from "leven";

const plain = (name: string): string => name.toLowerCase().replaceAll(/[^a-z0-9]/g, "");

/** One character in three may differ, two at most; case and signs do not count. */
export const closestName = (given: string, known: readonly string[]): string | undefined => {
  const wanted = plain(given);
  const most = Math.min(2, Math.floor(wanted.length / 3));
  if (wanted === "") return undefined;
  const match = closestMatch(wanted, known.map(plain), { maxDistance: most });
  return known.find((name) => plain(name) === match);
};
