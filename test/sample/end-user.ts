import { freeForm, unknownMembers } from "./values/free-form.ts";
import { writeInstant } from "./values/instants.ts";
import { json, type JsonText, type Member, object } from "./values/json-text.ts";
import type { SampleOptions } from "./options.ts";
import { FIRST_NAMES, LAST_NAMES } from "./values/phrases.ts";
import type { EndUserPlan } from "./plan.ts";
import { createRandom } from "./values/random.ts";
import { disguise, type SampleRecord, textOrNull } from "./record.ts";

/** Every field of specification 2.5. */
export function writeEndUser(options: SampleOptions, plan: EndUserPlan, ordinal: number): SampleRecord {
  const nonstandard = options.nonstandardShare;
  const facts = createRandom(options.seed, "end-user-facts", plan.index);
  const random = createRandom(options.seed, "end-user-export", plan.index, ordinal);
  const exported = plan.exports[ordinal] ?? { time: plan.createdAt, updatedAt: null };
  const first = facts.pick(FIRST_NAMES);
  const last = facts.pick(LAST_NAMES);
  const properties: JsonText = object([
    ["salesforce", json(facts.hex(18))],
    ...unknownMembers(facts, nonstandard, "crm_number"),
  ]);
  const profile: Member[] = [
    ["first_name", textOrNull(facts, 0.1, first)],
    ["last_name", textOrNull(facts, 0.1, last)],
    ["display_name", json(`${first} ${last}`)],
    ["avatar", textOrNull(facts, 0.5, `https://cdn.example.com/u/${facts.hex(8)}.jpg`)],
    ["email", textOrNull(facts, 0.2, `${facts.hex(8)}@example.com`)],
    ["language", json(facts.pick(["en-US", "de-DE", "fr", "pt-BR", "ja"]))],
    ["metadata", freeForm(random, nonstandard, 4)],
    ["system_properties", facts.chance(0.2) ? "{}" : properties],
    ...unknownMembers(facts, nonstandard / 2, "pronouns"),
  ];
  const members: Member[] = [
    ["end_user_id", json(plan.id)],
    ["profile", object(profile, random.chance(nonstandard / 4))],
    ["created_at", json(writeInstant(random, plan.createdAt))],
    ...(exported.updatedAt === null
      ? []
      : [["updated_at", json(writeInstant(random, exported.updatedAt))] as const]),
  ];
  return {
    id: plan.id,
    members: disguise(random, members, ["end_user_id", "created_at"], nonstandard, exported.time),
  };
}
