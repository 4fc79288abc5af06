import { writeConversation } from "./conversation.ts";
import { writeEndUser } from "./end-user.ts";
import { type BusEvent, EVENT_TYPES, type RecordKind, writeEvent } from "./event.ts";
import { HOUR, type Micros, SECOND, writeInstant } from "./values/instants.ts";
import { writeMessage } from "./message.ts";
import { SAMPLE_DEFAULTS, type SampleOptions } from "./options.ts";
import {
  type ConversationPlan,
  earliestArrival,
  type EndUserPlan,
  type ExportPlan,
  planConversation,
  planEndUser,
} from "./plan.ts";
import { writePoison } from "./poison.ts";
import { createRandom, type Random } from "./values/random.ts";
import type { SampleRecord } from "./record.ts";
import { createSchedule } from "./schedule.ts";

export type SampleTotals = {
  readonly events: number;
  readonly poison: number;
  readonly nulls: number;
  readonly duplicates: number;
  /** Duplicates included. */
  readonly accepted: Readonly<Record<RecordKind, number>>;
  /** Distinct. */
  readonly records: Readonly<Record<RecordKind, number>>;
};

/** Each iteration gives the same bytes. */
export type Sample = Iterable<BusEvent> & {
  readonly options: SampleOptions;
  totals(): SampleTotals;
};

type Flavour = "export" | "duplicate" | "poison" | "null";

type Step = {
  readonly at: Micros;
  readonly flavour: Flavour;
  readonly kind: RecordKind;
  readonly client: string;
  readonly id: string;
  readonly time: Micros;
  readonly seed: string;
  readonly write: () => SampleRecord;
};

type Source = Pick<Step, "kind" | "client" | "id" | "write">;

function addSteps(
  steps: Step[],
  options: SampleOptions,
  random: Random,
  source: Source,
  plan: ExportPlan,
  seed: string,
): void {
  const step: Step = { ...source, seed, flavour: "export", at: plan.arrival, time: plan.time };
  steps.push(step);
  if (random.chance(options.duplicateShare)) {
    steps.push({ ...step, flavour: "duplicate", at: plan.arrival + SECOND + random.int(HOUR) });
  }
  if (random.chance(options.poisonShare)) steps.push({ ...step, flavour: "poison" });
  if (random.chance(options.nullShare)) steps.push({ ...step, flavour: "null" });
}

function conversationSteps(options: SampleOptions, index: number): Step[] {
  const plan: ConversationPlan = planConversation(options, index);
  const random = createRandom(options.seed, "steps", index);
  const { client } = plan;
  const steps: Step[] = [];
  for (const [ordinal, message] of plan.messages.entries()) {
    for (const [again, one] of message.exports.entries()) {
      const write = (): SampleRecord => writeMessage(options, plan, ordinal, again);
      const source: Source = { kind: "message", client, id: message.id, write };
      addSteps(steps, options, random, source, one, `m${index}.${ordinal}.${again}`);
    }
  }
  for (const [ordinal, one] of plan.exports.entries()) {
    const write = (): SampleRecord => writeConversation(options, plan, ordinal);
    const source: Source = { kind: "conversation", client, id: plan.id, write };
    addSteps(steps, options, random, source, one, `c${index}.${ordinal}`);
  }
  return steps;
}

function endUserSteps(options: SampleOptions, index: number): Step[] {
  const plan: EndUserPlan = planEndUser(options, index);
  const random = createRandom(options.seed, "end-user-steps", index);
  const steps: Step[] = [];
  for (const [ordinal, one] of plan.exports.entries()) {
    const write = (): SampleRecord => writeEndUser(options, plan, ordinal);
    const source: Source = { kind: "end_user", client: plan.client, id: plan.id, write };
    addSteps(steps, options, random, source, one, `u${index}.${ordinal}`);
  }
  return steps;
}

function* plannedSteps(options: SampleOptions): Generator<{ readonly from: Micros; readonly steps: Step[] }> {
  let conversation = 0;
  let endUser = 0;
  while (conversation < options.conversations || endUser < options.endUsers) {
    const conversationAt = earliestArrival(options, conversation, options.conversations);
    const endUserAt = earliestArrival(options, endUser, options.endUsers);
    const isConversation =
      endUser >= options.endUsers || (conversation < options.conversations && conversationAt <= endUserAt);
    if (isConversation) {
      yield { from: conversationAt, steps: conversationSteps(options, conversation) };
      conversation += 1;
    } else {
      yield { from: endUserAt, steps: endUserSteps(options, endUser) };
      endUser += 1;
    }
  }
}

function writeStep(options: SampleOptions, step: Step, poisonIndex: number): BusEvent {
  const { kind, client, id, flavour } = step;
  const random = createRandom(options.seed, "event", step.seed);
  const time = writeInstant(random, step.time);
  if (flavour === "poison")
    return writePoison(random, poisonIndex, client, time, writeInstant(random, step.time));
  const key = `${client}/${id}`;
  if (flavour === "null") return { kind, key, value: null, headers: {}, poison: false };
  const record = step.write();
  const attributes = {
    specversion: "1.0",
    id: random.uuid(),
    source: `urn:sample:${client}`,
    type: EVENT_TYPES[kind],
    time,
    subject: id,
    clientid: client,
    datacontenttype: "application/json",
  };
  const wire = writeEvent(random, attributes, record.members, options.nonstandardShare);
  return { kind, key, ...wire, poison: false };
}

function* orderedEvents(options: SampleOptions): Generator<BusEvent> {
  const schedule = createSchedule<Step>();
  let poisoned = 0;
  function* takeUntil(until: Micros): Generator<BusEvent> {
    for (let step = schedule.take(until); step !== undefined; step = schedule.take(until)) {
      yield writeStep(options, step, poisoned);
      if (step.flavour === "poison") poisoned += 1;
    }
  }
  for (const { from, steps } of plannedSteps(options)) {
    yield* takeUntil(from);
    for (const step of steps) schedule.add(step.at, step);
  }
  yield* takeUntil(Number.POSITIVE_INFINITY);
}

function countTotals(options: SampleOptions): SampleTotals {
  const flavours = { export: 0, duplicate: 0, poison: 0, null: 0 };
  const accepted = { conversation: 0, message: 0, end_user: 0 };
  let messages = 0;
  for (const { steps } of plannedSteps(options)) {
    const ids = new Set<string>();
    for (const step of steps) {
      flavours[step.flavour] += 1;
      if (step.flavour === "export" || step.flavour === "duplicate") accepted[step.kind] += 1;
      if (step.kind === "message") ids.add(step.id);
    }
    messages += ids.size;
  }
  return {
    events: flavours.export + flavours.duplicate + flavours.poison + flavours.null,
    poison: flavours.poison,
    nulls: flavours.null,
    duplicates: flavours.duplicate,
    accepted,
    records: { conversation: options.conversations, message: messages, end_user: options.endUsers },
  };
}

/** Generated lazily, in order of arrival; only the options determine it. */
export function createSample(options: Partial<SampleOptions> = {}): Sample {
  const settled: SampleOptions = { ...SAMPLE_DEFAULTS, ...options };
  if (settled.clients.length === 0) throw new RangeError("a sample needs a client");
  return {
    options: settled,
    totals: () => countTotals(settled),
    [Symbol.iterator]: () => orderedEvents(settled),
  };
}
