import { unknownMembers } from "./values/free-form.ts";
import { writeInstant } from "./values/instants.ts";
import { array, json, type JsonText, type Member, object } from "./values/json-text.ts";
import type { SampleOptions } from "./options.ts";
import type { ConversationPlan } from "./plan.ts";
import { createRandom, type Random } from "./values/random.ts";
import { disguise, type SampleRecord } from "./record.ts";
import type { Speaker, Turn } from "./script.ts";

type Content = (random: Random, turn: Turn) => Member[];

const flag = (random: Random): JsonText => json(random.chance(0.5));
const mostlyNot = (random: Random): JsonText => json(random.chance(0.1));
const page = (random: Random): string => `https://shop.example.com/p/${random.hex(6)}?a=1&b=%20`;

/** Specification 2.3. */
export const SHAPES: Readonly<Record<string, Content>> = {
  greeting: (random) => [
    ["external_chat_id", json(random.uuid())],
    ["reviewable_message", "false"],
  ],
  text: (random, turn) => [
    ["body", json(turn.text)],
    ["has_variables", mostlyNot(random)],
    ["reviewable_message", flag(random)],
    ...(random.chance(0.2) ? [["has_forced_quick_replies", flag(random)] as const] : []),
  ],
  picture: (random, turn) => [
    ["alt_text", json(turn.text)],
    ["has_variables", mostlyNot(random)],
    ["pic_url", json(`https://cdn.example.com/${random.hex(16)}.png`)],
    ["reviewable_message", flag(random)],
  ],
  quick_replies: (random) => [
    ["has_variables", mostlyNot(random)],
    ["is_forced", flag(random)],
    [
      "quick_replies",
      array(
        ["Yes", "No 🙅", "Talk to a person"].slice(random.int(2)).map((label) =>
          object([
            ["button_type", '"quick_reply"'],
            ["label", json(label)],
            ["target", json(random.hex(24))],
          ]),
        ),
      ),
    ],
    ["reviewable_message", "false"],
  ],
  trigger: (random, turn) => [
    ["body", json(turn.text)],
    ["button_type", '"trigger"'],
    ["external_chat_id", json(random.uuid())],
    ["reviewable_message", "false"],
  ],
  meta: (random) => [
    ["meta_message_type", '"variable_change"'],
    [
      "meta_message_data",
      object([
        ["id", json(random.hex(24))],
        ["name", '"order_number"'],
        ["new_value", random.chance(0.2) ? "9007199254740993" : json(`A-${random.int(999_999)}`)],
        ["old_value", random.chance(0.5) ? "null" : '""'],
        ["scope", '"local"'],
      ]),
    ],
  ],
  link: (random, turn) => [
    ["alt_text", '"Help centre"'],
    ["generate_link_preview", flag(random)],
    ["has_variables", mostlyNot(random)],
    ["is_handoff", mostlyNot(random)],
    ["link_description", json(turn.text.slice(0, 80).toWellFormed())],
    ["link_icon", '"external"'],
    ["link_text", '"Read more"'],
    ["new_window", flag(random)],
    ["raw_url", json(page(random))],
    ["reviewable_message", flag(random)],
    ["title", '"How refunds work"'],
    ["url", json(page(random))],
  ],
  web_window: (random) => [
    ["has_forced_quick_replies", mostlyNot(random)],
    ["has_variables", mostlyNot(random)],
    ["is_handoff", mostlyNot(random)],
    ["locked", flag(random)],
    ["raw_url", json(page(random))],
    ["reviewable_message", flag(random)],
    ["window_button_label", '"Open form"'],
    ["window_height", random.pick(["500", "500.0", "100"])],
    ["window_title", '"Return form"'],
    ["window_url", json(page(random))],
    ["window_width", "360"],
  ],
  csat_shown: (random) => [["survey_type", json(random.pick(["proactive", "end_chat"]))]],
  csat: (random) => [
    ["is_positive", flag(random)],
    ["score", String(1 + random.int(5))],
    ["style", '"NUMERIC"'],
    ["survey_type", '"proactive"'],
  ],
};

const BOT_SHAPES = [
  "text",
  "text",
  "text",
  "text",
  "text",
  "quick_replies",
  "link",
  "picture",
  "web_window",
  "meta",
];
const CHATTER_SHAPES = ["text", "text", "text", "text", "text", "text", "text", "trigger", "picture", "csat"];

function shapeOf(random: Random, speaker: Speaker, ordinal: number, length: number): string {
  if (ordinal === 0 && random.chance(0.6)) return "greeting";
  if (ordinal === length - 1 && random.chance(0.1)) return speaker === "chatter" ? "csat" : "csat_shown";
  if (speaker === "agent") return "text";
  return random.pick(speaker === "bot" ? BOT_SHAPES : CHATTER_SHAPES);
}

function messageData(random: Random, turn: Turn, shape: string, nonstandardShare: number): JsonText {
  // Such messages are kept, never rejected.
  if (random.chance(nonstandardShare / 4)) {
    return random.pick([
      "null",
      "{}",
      '{"_type":"carousel","cards":[{"2":"b","1":"a"}]}',
      '{"_type":"text"}',
      '{"_type":7}',
    ]);
  }
  const content = SHAPES[shape]?.(random, turn) ?? [];
  const members: Member[] = [
    ["_type", json(shape)],
    ...content,
    ...unknownMembers(random, nonstandardShare / 2, "client_hint"),
  ];
  return object(
    random.chance(nonstandardShare) ? members.reverse() : members,
    random.chance(nonstandardShare / 8),
  );
}

function answerId(random: Random, speaker: Speaker, isGenerative: boolean): JsonText {
  if (speaker !== "bot") return "null";
  return isGenerative ? '"None"' : json(random.hex(24));
}

/** Every field of specification 2.2. */
export function writeMessage(
  options: SampleOptions,
  plan: ConversationPlan,
  ordinal: number,
  exportOrdinal: number,
): SampleRecord {
  const message = plan.messages[ordinal];
  const exported = message?.exports[exportOrdinal];
  if (message === undefined || exported === undefined) throw new RangeError(`no message ${ordinal}`);
  const nonstandard = options.nonstandardShare;
  const facts = createRandom(options.seed, "message-facts", plan.index, ordinal);
  const random = createRandom(options.seed, "message-export", plan.index, ordinal, exportOrdinal);
  const turn = plan.script.turnAt(ordinal);
  const { speaker } = turn;
  const isChatter = speaker === "chatter";
  const isGenerative = facts.chance(0.6);
  const shape = shapeOf(facts, speaker, ordinal, plan.script.length);
  const isAgain = exportOrdinal > 0;
  const sender = isChatter ? plan.chatterId : speaker;
  const recipient = isChatter ? (plan.script.hasAgent ? "agent" : "bot") : plan.chatterId;
  const previous = plan.messages[ordinal - 1]?.id;
  const rating = random.chance(nonstandard / 2) ? random.pick(["9", "-1"]) : String(random.int(6));
  const isNamed = speaker === "bot" && !isGenerative;
  const members: Member[] = [
    ["_id", json(message.id)],
    ["answer_id", answerId(facts, speaker, isGenerative)],
    ["answer_title", isNamed ? json(`${plan.script.topic.name} – ${shape}`) : "null"],
    ["chatter_id", facts.chance(0.03) ? "null" : json(plan.chatterId)],
    ["conversation_id", json(plan.id)],
    ["date_created", json(writeInstant(random, message.createdAt))],
    ["link_was_clicked", shape === "link" ? json(isAgain) : "null"],
    ["message_data", messageData(facts, turn, shape, nonstandard)],
    ["recipient", json(facts.chance(0.02) ? "platform" : recipient)],
    ["review", isAgain || facts.chance(0.05) ? rating : "null"],
    ["sender", json(shape === "meta" ? "platform" : sender)],
    ["in_response_to", json(previous ?? "None")],
  ];
  const required = ["_id", "conversation_id", "date_created"];
  return { id: message.id, members: disguise(random, members, required, nonstandard, exported.time) };
}
