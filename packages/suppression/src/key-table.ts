import { randomInt } from "node:crypto";

/** Memory grows in place; words and values are whole numbers below 2 ** 32. */
export type KeyTable = {
  /** Keeps the larger value; 0 is none. False: no room for another key. */
  put(high: number, low: number, value: number): boolean;
  get(high: number, low: number): number;
  size(): number;
  bytes(): number;
  clear(): void;
};

/** The key, its first word spread, and the value; 0: free. */
const WORDS = 3;
const SLOT_BYTES = WORDS * Uint32Array.BYTES_PER_ELEMENT;
/** Keeps the way from a key's home short. */
const FULLEST = 0.85;
const GROWTH = 1.125;
const FIRST_SLOTS = 1 << 12;
/** For keys at home near the end. */
const SPARE_SLOTS = 1 << 12;
const WORD = 2 ** 32;

const slotsFor = (keys: number): number => Math.ceil(keys / FULLEST) + 1;

export const createKeyTable = (maxKeys: number): KeyTable => {
  // Random: nobody can choose keys that collide.
  const spreader = randomInt(WORD / 2) * 2 + 1;
  const mostSlots = slotsFor(maxKeys);
  const bytesFor = (slots: number): number => (slots + SPARE_SLOTS) * SLOT_BYTES;
  const buffer = new ArrayBuffer(0, { maxByteLength: bytesFor(mostSlots) });
  const words = new Uint32Array(buffer);
  let slots = 0;
  let size = 0;

  const valueAt = (slot: number): number => words[slot * WORDS + 2] ?? 0;
  const homeOf = (first: number): number => Math.floor((first * slots) / WORD);

  /** Keys are in order, with no free slot between a key and its home. */
  const find = (first: number, low: number): number => {
    let slot = homeOf(first);
    for (; valueAt(slot) !== 0; slot += 1) {
      const other = words[slot * WORDS] ?? 0;
      if (other > first || (other === first && (words[slot * WORDS + 1] ?? 0) >= low)) break;
    }
    return slot;
  };

  const isAt = (slot: number, first: number, low: number): boolean =>
    valueAt(slot) !== 0 && words[slot * WORDS] === first && words[slot * WORDS + 1] === low;

  const set = (slot: number, first: number, low: number, value: number): void => {
    words[slot * WORDS] = first;
    words[slot * WORDS + 1] = low;
    words[slot * WORDS + 2] = value;
  };

  const move = (from: number, to: number): void =>
    set(to, words[from * WORDS] ?? 0, words[from * WORDS + 1] ?? 0, valueAt(from));

  /** First to the block's end, then home, in order. */
  const grow = (): void => {
    const before = words.length / WORDS;
    slots = Math.min(Math.max(FIRST_SLOTS, Math.ceil(slots * GROWTH)), mostSlots);
    buffer.resize(bytesFor(slots));
    const end = words.length / WORDS;
    let from = end;
    for (let slot = before - 1; slot >= 0; slot -= 1) {
      if (valueAt(slot) === 0) continue;
      from -= 1;
      move(slot, from);
    }
    words.fill(0, 0, from * WORDS);
    let free = 0;
    for (let slot = from; slot < end; slot += 1) {
      const to = Math.max(homeOf(words[slot * WORDS] ?? 0), free);
      free = to + 1;
      if (to === slot) continue;
      move(slot, to);
      words[slot * WORDS + 2] = 0;
    }
  };

  const firstFree = (from: number): number => {
    let slot = from;
    while (valueAt(slot) !== 0) slot += 1;
    return slot;
  };

  return {
    put: (high, low, value) => {
      if (value === 0) return true;
      const first = Math.imul(high, spreader) >>> 0;
      let slot = find(first, low);
      if (isAt(slot, first, low)) {
        if (value > valueAt(slot)) words[slot * WORDS + 2] = value;
        return true;
      }
      if (size >= maxKeys) return false;
      if (size >= Math.floor(slots * FULLEST)) {
        grow();
        slot = find(first, low);
      }
      const free = firstFree(slot);
      if (free >= slots + SPARE_SLOTS - 1) return false;
      for (let to = free; to > slot; to -= 1) move(to - 1, to);
      set(slot, first, low, value);
      size += 1;
      return true;
    },
    get: (high, low) => {
      if (size === 0) return 0;
      const first = Math.imul(high, spreader) >>> 0;
      const slot = find(first, low);
      return isAt(slot, first, low) ? valueAt(slot) : 0;
    },
    size: () => size,
    bytes: () => buffer.byteLength,
    clear: () => {
      buffer.resize(0);
      slots = 0;
      size = 0;
    },
  };
};
