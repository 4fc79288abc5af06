import { freeForm, unknownMembers, NONSTANDARD_NUMBERS } from "./values/free-form.ts";
import { writeHandoffs } from "./handoffs.ts";
import { writeInstant } from "./values/instants.ts";
import { array, json, type JsonText, type Member, object } from "./values/json-text.ts";
import type { SampleOptions } from "./options.ts";
import type { ConversationPlan } from "./plan.ts";
import { createRandom, type Random } from "./values/random.ts";
import { disguise, type SampleRecord, textOrNull } from "./record.ts";
import type { Script } from "./script.ts";

const BROWSERS = [
  ["Chrome", "141.0.7390.54"],
  ["Safari", "26.0"],
  ["Firefox", "144.0"],
  ["Samsung Internet", "28.0.1.59"],
];
const DEVICES = ["iOS", "Android", "Windows", "Mac OS X", "Linux"];
const PLATFORMS = ["web", "ios_sdk", "whatsapp", "facebook", "email", "voice"];
const AGENTS = [
  ["agent-11", "Sam Porter"],
  ["agent-12", "Jörg Weiß"],
  ["agent-13", "佐藤 花"],
  ["agent-14", "Chloé N’Diaye"],
];

function seconds(random: Random, nonstandardShare: number, most: number): JsonText {
  if (random.chance(0.1)) return "null";
  if (random.chance(nonstandardShare))
    return random.pick(["312.0", "1.5e3", "0.50", "1E2", "0", ...NONSTANDARD_NUMBERS.slice(0, 4)]);
  return random.chance(0.5) ? String(random.int(most)) : json(random.int(most * 1_000) / 1_000);
}

function classifications(random: Random, script: Script, nonstandardShare: number): JsonText {
  if (random.chance(0.1)) return "[]";
  const statuses = random.chance(nonstandardShare) ? ["archived", "retired?"] : ["active"];
  const intents = script.topic.intents
    .slice(0, 2)
    .map((name, at) =>
      object([
        ["intent_id", json(`intent-${script.topic.name.length}-${at}`)],
        ["intent_name", json(name)],
        ["status", json(random.pick(statuses))],
        ...unknownMembers(random, nonstandardShare, "confidence"),
      ]),
    );
  const item = object([
    ["topic_id", json(`topic-${script.topic.name.length}`)],
    ["topic_name", json(script.topic.name)],
    ...(intents.length === 0 && random.chance(0.5) ? [] : [["intents", array(intents)] as const]),
    ...unknownMembers(random, nonstandardShare / 2, "topic_score"),
  ]);
  return array([item]);
}

/** Empty: not answered. */
function csat(random: Random, nonstandardShare: number): JsonText {
  if (random.chance(0.6)) return random.chance(0.15) ? "null" : "{}";
  const isPositive = random.chance(0.7);
  const members: Member[] = [
    [
      "comment",
      textOrNull(random, 0.4, random.pick(["Quick and friendly", "War okay 🙂", "Never again!\nReally."])),
    ],
    ["feedback", textOrNull(random, 0.5, "agent was helpful")],
    ["is_positive", json(isPositive)],
    ["resolved", json(random.pick([true, false, null]))],
    [
      "score",
      random.chance(nonstandardShare) ? "4.0" : String(isPositive ? 4 + random.int(2) : 1 + random.int(3)),
    ],
    ["style", json(random.pick(["NUMERIC", "EMOJI", "THUMBS"]))],
    ["survey_type", json(random.pick(["proactive", "end_chat"]))],
    ["customer_effort_score", random.chance(0.5) ? "null" : String(1 + random.int(7))],
    ["ces_max", random.chance(0.5) ? "null" : "7"],
    ["net_promoter_score", random.chance(0.5) ? "null" : String(random.int(11))],
  ];
  const shown = random.chance(0.3) ? members.slice(2, 7) : members;
  return object([...shown, ...unknownMembers(random, nonstandardShare, "raw_answer")]);
}

function coaching(random: Random): JsonText {
  if (!random.chance(0.25)) return "[]";
  return array([
    object([
      ["id", json(random.hex(24))],
      ["entity_name", textOrNull(random, 0.1, "refund")],
      ["coaching_type", textOrNull(random, 0.1, "instruction")],
      ["coaching_instructions", textOrNull(random, 0.1, "Ask for the order number first.")],
      ["coaching_intent", textOrNull(random, 0.3, "Refund not received")],
    ]),
  ]);
}

function articles(random: Random, script: Script): JsonText {
  if (!random.chance(0.5)) return "[]";
  const id = random.hex(8);
  return array([
    object([
      ["id", json(id)],
      ["name", json(script.topic.article)],
      ["url", textOrNull(random, 0.2, `https://help.example.com/${script.language}/${id}`)],
      ["source", textOrNull(random, 0.2, "zendesk")],
    ]),
  ]);
}

function playbooks(random: Random): JsonText {
  if (!random.chance(0.3)) return "[]";
  return array([
    object([
      ["id", json(random.hex(12))],
      ["name", json(random.pick(["Refund a parcel", "Verify identity"]))],
      ["playbook_execution_id", textOrNull(random, 0.2, random.uuid())],
      ["outcome_status", textOrNull(random, 0.2, random.pick(["completed", "abandoned"]))],
    ]),
  ]);
}

function tools(random: Random, script: Script, nonstandardShare: number): JsonText {
  return array(
    script.tools.map((name) =>
      object([
        ["id", json(random.uuid())],
        ...(random.chance(0.1) ? [] : [["tool_id", textOrNull(random, 0.25, `tool-${name}`)] as const]),
        ["connection_id", textOrNull(random, 0.1, "conn-shop")],
        ["connection_name", textOrNull(random, 0.1, "Shop backend")],
        ["tool_name", textOrNull(random, 0.05, name)],
        ["outcome_status", textOrNull(random, 0.1, random.pick(["succeeded", "failed"]))],
        ...unknownMembers(random, nonstandardShare / 2, "latency_ms"),
      ]),
    ),
  );
}

/** Every field of specification 2.1. */
export function writeConversation(
  options: SampleOptions,
  plan: ConversationPlan,
  ordinal: number,
): SampleRecord {
  const { script } = plan;
  const nonstandard = options.nonstandardShare;
  // All exports share facts; changes come from a stream of each export.
  const facts = createRandom(options.seed, "facts", plan.index);
  const random = createRandom(options.seed, "export", plan.index, ordinal);
  const [browser, browserVersion] = facts.pick(BROWSERS);
  const agents = script.hasAgent ? AGENTS.slice(facts.int(3), 4).slice(0, 1 + facts.int(2)) : [];
  const last = agents.at(-1);
  const resolved = facts.pick(["Resolved", "Resolved", "Not Resolved"]);
  const classification = random.chance(nonstandard / 4) ? "Partly Resolved" : resolved;
  const { time, updatedAt } = plan.exports[ordinal] ?? { time: plan.createdAt, updatedAt: null };
  const isBlankUpdate = updatedAt === null && random.chance(0.5);
  const topicId = facts.hex(24);
  const members: Member[] = [
    ["_id", json(plan.id)],
    ["agent_id", json(agents.map(([id]) => id))],
    ["agent_name", json(agents.map(([, name]) => name))],
    ["agent_handle_time", script.hasAgent ? seconds(facts, nonstandard, 1_800) : "null"],
    ["bot_handle_time", seconds(facts, nonstandard, 400)],
    ["automated_resolution_classification", json(classification)],
    [
      "automated_resolution_classification_reason",
      json(
        `${script.topic.name}: the assistant ${resolved === "Resolved" ? "answered from an article and the chatter confirmed." : "could not complete the request before the chatter left."}`,
      ),
    ],
    ["browser", textOrNull(facts, 0.05, browser ?? "")],
    ["browser_version", textOrNull(facts, 0.05, browserVersion ?? "")],
    ["changeset_id", json(facts.chance(0.8) ? "baseline" : facts.hex(24))],
    ["chatter_id", json(plan.chatterId)],
    ["classifications", classifications(random, script, nonstandard)],
    ["csat", csat(random, nonstandard)],
    ["date_created", json(writeInstant(random, plan.createdAt))],
    ...(updatedAt === null && !isBlankUpdate
      ? []
      : [["date_updated", updatedAt === null ? "null" : json(writeInstant(random, updatedAt))] as const]),
    ["device", textOrNull(facts, 0.05, facts.pick(DEVICES))],
    ["end_user_id", json(plan.endUserId)],
    ["generated_topic_id", json(topicId)],
    ["generated_topic_label", textOrNull(facts, 0.1, script.topic.name)],
    ["generated_topic_v2_id", textOrNull(facts, 0.1, `v2-${topicId}`)],
    ["generated_topic_v2_title", textOrNull(facts, 0.1, `${script.topic.name} (${script.language})`)],
    ["generated_topic_v2_desc", textOrNull(facts, 0.2, `Chatters who ask about "${script.topic.article}"`)],
    ["generated_topic_v2_parent_id", textOrNull(facts, 0.5, `v2-${topicId.slice(0, 6)}`)],
    ["inquiry_summary", json(script.summary)],
    ["is_engaged", json(script.length > 1)],
    ["is_escalated", json(script.hasAgent)],
    ["is_test_user", json(facts.chance(0.03))],
    ["language", json(script.language)],
    ["last_agent_id", json(last?.[0] ?? null)],
    ["last_agent_name", json(last?.[1] ?? null)],
    ["metavariables", freeForm(random, nonstandard, 4)],
    ["oauth_channel", textOrNull(facts, 0.7, "google")],
    ["platform", json(facts.pick(PLATFORMS))],
    ["used_coaching", coaching(facts)],
    ["used_articles", articles(facts, script)],
    ["handoffs", array(writeHandoffs(options, plan, ordinal))],
    ["used_playbooks", playbooks(facts)],
    ["used_mcp", tools(facts, script, nonstandard)],
    ["variables", freeForm(random, nonstandard, 6)],
  ];
  return { id: plan.id, members: disguise(random, members, ["_id", "date_created"], nonstandard, time) };
}
