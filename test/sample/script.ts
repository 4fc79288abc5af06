import type { Random } from "./values/random.ts";
import { createRandom } from "./values/random.ts";
import {
  FIRST_NAMES,
  LAST_NAMES,
  PHRASES,
  PRODUCTS,
  TOPICS,
  type Topic,
  NONSTANDARD_ENDINGS,
} from "./values/phrases.ts";

export type Speaker = "chatter" | "bot" | "agent";
export type Turn = { readonly speaker: Speaker; readonly text: string };

export type Dialog = {
  readonly topic: string;
  readonly turns: readonly Turn[];
  readonly tools: readonly string[];
};

export type Script = {
  readonly language: string;
  readonly topic: Topic;
  readonly length: number;
  readonly hasAgent: boolean;
  readonly summary: string;
  readonly tools: readonly string[];
  readonly firstName: string;
  readonly lastName: string;
  turnAt(index: number): Turn;
};

const TOOLS = ["get_order", "list_orders", "create_refund", "send_reset_link", "find_slots", "book_slot"];
const DAYS = ["Monday", "3 October", "2026-09-28", "12/10", "Freitag", "ayer"];
const SLOT = /\{(\w+)\}/g;
const LONG_SHARE = 0.004;

function fill(template: string, slots: Readonly<Record<string, string>>): string {
  return template.replace(SLOT, (all, name: string) => slots[name] ?? all);
}

/** Each turn depends only on `seedParts` and its index. */
export function writeScript(
  length: number,
  nonstandardShare: number,
  seedParts: readonly (string | number)[],
): Script {
  const random = createRandom(...seedParts);
  const phrases = random.chance(0.55) ? PHRASES[0] : random.pick(PHRASES);
  if (phrases === undefined) throw new RangeError("no phrases");
  const topicIndex = random.int(TOPICS.length);
  const topic = TOPICS[topicIndex] ?? random.pick(TOPICS);
  const openers = phrases.openers[topicIndex] ?? phrases.replies;
  const firstName = random.pick(FIRST_NAMES);
  const lastName = random.pick(LAST_NAMES);
  const slots = {
    name: firstName,
    order: `${random.pick(["A", "B", "NL"])}-${100_000 + random.int(900_000)}`,
    product: random.pick(PRODUCTS),
    day: random.pick(DAYS),
    amount: random.pick([`€ ${random.int(400)},90`, `$${random.int(900)}.00`, `¥${random.int(40_000)}`]),
    mail: `${random.hex(6)}@example.com`,
  };
  const hasAgent = length > 4 && random.chance(0.3);
  const tools = random.chance(0.35)
    ? Array.from({ length: 1 + random.int(3) }, () => random.pick(TOOLS))
    : [];

  const speakerAt = (index: number): Speaker => {
    if (index % 2 === 1) return "chatter";
    return hasAgent && index >= length / 2 ? "agent" : "bot";
  };
  const templatesAt = (index: number, speaker: Speaker): readonly string[] => {
    if (index === 0) return phrases.greetings;
    if (index === 1) return openers;
    if (speaker === "agent") return phrases.agents;
    if (speaker === "bot") return phrases.answers;
    return index >= length - 2 ? phrases.thanks : phrases.replies;
  };
  const turnAt = (index: number): Turn => {
    const turn = createRandom(...seedParts, "turn", index);
    const speaker = speakerAt(index);
    let text = fill(turn.pick(templatesAt(index, speaker)), slots);
    if (turn.chance(0.3)) text += ` ${fill(turn.pick(phrases.fillers), slots)}`;
    if (turn.chance(nonstandardShare)) text += turn.pick(NONSTANDARD_ENDINGS);
    if (turn.chance(LONG_SHARE)) {
      const size = 1_500 + turn.int(6_000);
      while (text.length < size)
        text += `\n${fill(turn.pick([...phrases.fillers, ...phrases.answers]), slots)}`;
    }
    return { speaker, text };
  };
  const summary = `${topic.name}: ${fill(random.pick(openers), slots)} ${fill(random.pick(phrases.answers), slots)}`;
  return { language: phrases.language, topic, length, hasAgent, summary, tools, firstName, lastName, turnAt };
}

export function followDialog(dialog: Dialog, random: Random): Script {
  const topic = { name: dialog.topic, intents: [], article: `About ${dialog.topic}` };
  return {
    language: "en",
    topic,
    length: dialog.turns.length,
    hasAgent: dialog.turns.some((turn) => turn.speaker === "agent"),
    summary: dialog.turns.find((turn) => turn.speaker === "chatter")?.text ?? "",
    tools: dialog.tools,
    firstName: random.pick(FIRST_NAMES),
    lastName: random.pick(LAST_NAMES),
    turnAt: (index) => dialog.turns[index] ?? { speaker: "bot", text: "" },
  };
}
