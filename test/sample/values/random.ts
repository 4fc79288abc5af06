/** Not for secrets. */
export type Random = {
  /** Below 1. */
  next(): number;
  int(bound: number): number;
  chance(share: number): boolean;
  pick<T>(list: readonly T[]): T;
  hex(digits: number): string;
  uuid(): string;
};

const HEX_PAIRS: readonly string[] = Array.from({ length: 256 }, (_, byte) =>
  byte.toString(16).padStart(2, "0"),
);

function hexOf(word: number): string {
  const pair = (byte: number): string => HEX_PAIRS[byte & 255] ?? "";
  return pair(word >>> 24) + pair(word >>> 16) + pair(word >>> 8) + pair(word);
}

function hashWords(text: string): [number, number, number, number] {
  let h1 = 0x9e3779b9;
  let h2 = 0x243f6a88;
  for (let i = 0; i < text.length; i += 1) {
    const code = text.charCodeAt(i);
    h1 = Math.imul(h1 ^ code, 0x85ebca6b);
    h2 = Math.imul(h2 ^ code, 0xc2b2ae35);
    h1 ^= h1 >>> 15;
    h2 ^= h2 >>> 13;
  }
  return [h1, h2, h1 ^ Math.imul(h2, 0x27d4eb2f), text.length];
}

/** sfc32 (PractRand); depends only on `parts`. */
export function createRandom(...parts: readonly (string | number)[]): Random {
  let [a, b, c, d] = hashWords(parts.join("/"));
  const word = (): number => {
    const sum = (a + b + d) | 0;
    d = (d + 1) | 0;
    a = b ^ (b >>> 9);
    b = (c + (c << 3)) | 0;
    c = ((c << 21) | (c >>> 11)) + sum;
    return sum >>> 0;
  };
  for (let i = 0; i < 12; i += 1) word();
  const next = (): number => word() / 4_294_967_296;
  const int = (bound: number): number => Math.floor(next() * bound);
  const hex = (digits: number): string => {
    let out = "";
    while (out.length < digits) out += hexOf(word());
    return out.length === digits ? out : out.slice(0, digits);
  };
  return {
    next,
    int,
    hex,
    chance: (share) => next() < share,
    pick: <T>(list: readonly T[]): T => {
      if (list.length === 0) throw new RangeError("nothing to pick from");
      return list[int(list.length)] as T;
    },
    uuid: () => `${hex(8)}-${hex(4)}-4${hex(3)}-a${hex(3)}-${hex(12)}`,
  };
}

/** The whole part plus a Poisson number for the fraction. */
export function drawCount(random: Random, mean: number): number {
  const whole = Math.floor(mean);
  const limit = Math.exp(whole - mean);
  let count = whole;
  for (let product = random.next(); product > limit; product *= random.next()) count += 1;
  return mean === whole ? whole : count;
}
