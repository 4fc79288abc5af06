/** Bounds the cost of records that are wrong throughout. */
export const MOST_NAMES = 20;

/** False: the list is full. */
export function note(names: string[], name: string): boolean {
  if (names.length >= MOST_NAMES) return false;
  names.push(name);
  return true;
}
