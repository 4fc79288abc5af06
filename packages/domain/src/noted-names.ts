/** A record that is wrong throughout must not cost more to count than to store. */
const MOST_NAMES = 20;

/** Adds a name to those of a record that are to be counted; false when there are enough, and it is passed over. */
export function note(names: string[], name: string): boolean {
  if (names.length >= MOST_NAMES) return false;
  names.push(name);
  return true;
}
