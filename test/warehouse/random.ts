import { createRandom as createStream, type Random } from "../sample/values/random.ts";

export type { Random };

export const seed = Number(process.env["FC_SEED"] ?? 1);

/** Repeatable by the run's seed; every test passes another `salt`. */
export const createRandom = (salt: number): Random => createStream(seed, salt);

export function shuffled<T>(random: Random, list: readonly T[]): T[] {
  const out = [...list];
  for (let i = out.length - 1; i > 0; i -= 1) {
    const j = random.int(i + 1);
    [out[i], out[j]] = [out[j] as T, out[i] as T];
  }
  return out;
}
