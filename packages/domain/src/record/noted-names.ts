/** Bounds the cost of a record that is wrong throughout. */
const MOST_NAMES = 20;

/** False: the list is full, the name is dropped. */
export function note(names: string[], name: string): boolean {
  if (names.length >= MOST_NAMES) return false;
  names.push(name);
  return true;
}
