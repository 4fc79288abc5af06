import { array, json, type JsonText, type Member, object } from "./json-text.ts";
import type { Random } from "./random.ts";

/** Doubles would change them. */
export const NONSTANDARD_NUMBERS: readonly JsonText[] = [
  "9007199254740993",
  "18446744073709551615",
  "-9223372036854775808",
  "123456789012345678901234567890",
  "1.0",
  "2.50",
  "0.10",
  "1e5",
  "1E+5",
  "1.5e-7",
  "-0",
  "-0.0",
  "1.7976931348623157e308",
  "0.30000000000000004441",
  "12345678901234567890.125",
  "0.0000001",
  "1234567890123456.5",
];

/** Several spellings, or key orders that JavaScript loses. */
const NONSTANDARD_VALUES: readonly JsonText[] = [
  '{"10":"ten","2":"two","1":"one","a":0}',
  '{"3":{"12":[],"5":null},"1":{}}',
  '{"\\u0032":"escaped digit","1":"plain"}',
  '{"":"empty key","__proto__":{"x":1},"constructor":"c","a.b":1,"say \\"hi\\"":2}',
  '{"😀":"emoji key","naïve":true}',
  '"caf\\u00e9 \\/ \\ud83d\\ude00 \\u0041"',
  '"half a pair: \\ud800"',
  '{"half a key: \\uDC00":"\\ude00\\ud83d"}',
  '{"twice":1,"once":[],"tw\\u0069ce":{"a":"x","b":1.0,"a":"last"}}',
  '{"twice":1,"twice":"last"}',
  '"nul: \\u0000 bell: \\u0007"',
  '[ 1 ,\n\t2.0 , [ ] , { } , "a , b : c" ]',
  "[[[[]]],{},null,false,true]",
  '"None"',
  '"null"',
];

function value(random: Random, nonstandardShare: number): JsonText {
  if (random.chance(nonstandardShare))
    return random.pick(random.chance(0.5) ? NONSTANDARD_NUMBERS : NONSTANDARD_VALUES);
  switch (random.int(8)) {
    case 0:
      return String(random.int(10_000));
    case 1:
      return json(random.int(1_000_000) / 8 + 0.125);
    case 2:
      return random.chance(0.5) ? "true" : "false";
    case 3:
      return "null";
    default:
      return json(
        random.pick(["gold", "web", "2026-10-04T08:00:00", "shop/de", "Ünïcode", "n/a", random.hex(12)]),
      );
  }
}

const NAMES = [
  "plan",
  "cart_id",
  "store",
  "locale",
  "orders_total",
  "is_vip",
  "referrer",
  "last_seen",
  "ab_test",
  "score",
];

export function freeForm(random: Random, nonstandardShare: number, most: number): JsonText {
  if (random.chance(0.08)) return "{}";
  const members = new Map<string, JsonText>();
  const count = 1 + random.int(most);
  for (let at = 0; at < count; at += 1) {
    const isNumbered = random.chance(nonstandardShare / 2);
    const name = isNumbered ? String(99 - random.int(99)) : random.pick(NAMES);
    const text = random.chance(0.1)
      ? array([value(random, nonstandardShare), value(random, nonstandardShare)])
      : value(random, nonstandardShare);
    members.set(
      name,
      random.chance(0.06)
        ? object([
            ["value", text],
            ["scope", '"session"'],
          ])
        : text,
    );
  }
  return object([...members], random.chance(nonstandardShare / 3));
}

/** Not in the specification. */
export function unknownMembers(random: Random, share: number, name: string): Member[] {
  return random.chance(share) ? [[name, value(random, 0.5)]] : [];
}
