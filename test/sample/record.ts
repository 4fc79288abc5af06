import { json, type JsonText, type Member } from "./values/json-text.ts";
import { writeInstant } from "./values/instants.ts";
import type { Random } from "./values/random.ts";
import { unknownMembers } from "./values/free-form.ts";

/** A record's id and its `data` members, ready for the envelope. */
export type SampleRecord = { readonly id: string; readonly members: readonly Member[] };

/** A text field that is sometimes null. */
export function textOrNull(random: Random, share: number, text: string): JsonText {
  return random.chance(share) ? "null" : json(text);
}

/**
 * Varies a full record as different producers would: fields absent or null, all except the `required` ones
 * absent, unknown fields, a meaningless `record_last_updated`, any order of fields.
 */
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
