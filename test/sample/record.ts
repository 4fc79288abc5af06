import { json, type JsonText, type Member } from "./values/json-text.ts";
import { writeInstant } from "./values/instants.ts";
import type { Random } from "./values/random.ts";
import { unknownMembers } from "./values/free-form.ts";

export type SampleRecord = { readonly id: string; readonly members: readonly Member[] };

export function textOrNull(random: Random, share: number, text: string): JsonText {
  return random.chance(share) ? "null" : json(text);
}

export function disguise(
  random: Random,
  members: readonly Member[],
  required: readonly string[],
  nonstandardShare: number,
  exportedAt: number,
): Member[] {
  let shown: Member[] = [...members];
  if (random.chance(nonstandardShare)) {
    const isBare = random.chance(0.15);
    shown = shown.flatMap(([name, text]): Member[] => {
      if (required.includes(name)) return [[name, text]];
      if (isBare || random.chance(0.3)) return [];
      return [[name, random.chance(0.3) ? "null" : text]];
    });
  }
  if (random.chance(0.1))
    shown.push(["record_last_updated", textOrNull(random, 0.5, writeInstant(random, exportedAt))]);
  shown.push(...unknownMembers(random, nonstandardShare / 2, "sentiment"));
  shown.push(...unknownMembers(random, nonstandardShare / 4, "x_internal"));
  return random.chance(nonstandardShare) ? shown.reverse() : shown;
}
