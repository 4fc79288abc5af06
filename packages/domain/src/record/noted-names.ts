/** Bounds the cost of counting for a record that is wrong throughout. */
const MOST_NAMES = 20;

/** Adds a name to be counted; false when the list is full and the name is dropped. */
export function note(names: string[], name: string): boolean {
  if (names.length >= MOST_NAMES) return false;
  names.push(name);
  return true;
}
