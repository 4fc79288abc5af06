import { coarsen, DAY, HOUR, type Micros, MINUTE, SECOND } from "./values/instants.ts";
import type { SampleOptions } from "./options.ts";
import { createRandom, drawCount, type Random } from "./values/random.ts";
import { followDialog, type Script, writeScript } from "./script.ts";

export type ExportPlan = {
  readonly time: Micros;
  readonly updatedAt: Micros | null;
  readonly arrival: Micros;
};

export type MessagePlan = {
  readonly id: string;
  readonly createdAt: Micros;
  readonly exports: readonly ExportPlan[];
};

export type ConversationPlan = {
  readonly index: number;
  readonly client: string;
  readonly id: string;
  readonly chatterId: string;
  readonly endUserId: string | null;
  readonly createdAt: Micros;
  readonly script: Script;
  readonly messages: readonly MessagePlan[];
  readonly exports: readonly ExportPlan[];
};

export type EndUserPlan = {
  readonly index: number;
  readonly client: string;
  readonly id: string;
  readonly createdAt: Micros;
  readonly exports: readonly ExportPlan[];
};

const TIES_PER = 20;
const MESSAGE_AGAIN = 0.06;

export function earliestArrival(options: SampleOptions, index: number, count: number): Micros {
  return slotStart(options, index, count) - SECOND;
}

function slotStart(options: SampleOptions, index: number, count: number): Micros {
  const start = Date.parse(options.start) * 1_000;
  return start + Math.floor((index / Math.max(count, 1)) * options.days * DAY);
}

function tieLeader(options: SampleOptions, index: number): number {
  const period = options.tieSize * TIES_PER;
  const leader = index - (index % period) + Math.floor(period / 2);
  return index >= leader && index < leader + options.tieSize ? leader : index;
}

function createdAt(options: SampleOptions, kind: string, index: number, count: number): Micros {
  const random = createRandom(options.seed, kind, "created", index);
  const slot = (options.days * DAY) / Math.max(count, 1);
  return coarsen(random, slotStart(options, index, count) + Math.floor(random.next() * slot));
}

function lateness(random: Random): Micros {
  return Math.floor(MINUTE * Math.exp(random.next() * Math.log(36 * 60)));
}

/** An older export may arrive after its successor. */
function planExports(
  options: SampleOptions,
  random: Random,
  times: readonly { readonly time: Micros; readonly updatedAt: Micros | null }[],
): ExportPlan[] {
  const arrivals = times.map(({ time }) => {
    const delay = random.chance(options.lateShare) ? lateness(random) : random.int(3 * SECOND);
    return time + SECOND + delay;
  });
  return times.map(({ time, updatedAt }, at) => {
    const arrival = arrivals[at] ?? time;
    const next = arrivals[at + 1];
    const isOvertaken = next !== undefined && random.chance(options.lateShare);
    return { time, updatedAt, arrival: isOvertaken ? next + SECOND : arrival };
  });
}

function planConversationExports(
  options: SampleOptions,
  random: Random,
  created: Micros,
  ended: Micros,
): ExportPlan[] {
  const count = Math.max(1, drawCount(random, options.exportsPerConversation));
  const times: { time: Micros; updatedAt: Micros | null }[] = [];
  let updatedAt = ended + random.int(10 * MINUTE);
  let time = coarsen(random, updatedAt + 2 * SECOND);
  for (let at = 0; at < count; at += 1) {
    if (at > 0) {
      const gap = random.chance(0.12) ? DAY + random.int((4 * DAY) / count) : MINUTE + random.int(5 * HOUR);
      // Exports of one instant: only their places on the bus order them.
      const isSameInstant = random.chance(options.nonstandardShare / 4);
      if (!isSameInstant) {
        time = coarsen(random, time + gap);
        if (!random.chance(0.1)) updatedAt = time - SECOND - random.int(5 * SECOND);
      }
    }
    const saysNothing = random.chance(options.nonstandardShare / 4);
    const isCorrectedBack = random.chance(options.nonstandardShare / 8);
    const shown = isCorrectedBack ? created + random.int(updatedAt - created + 1) : updatedAt;
    times.push({ time, updatedAt: saysNothing ? null : coarsen(random, shown) });
  }
  return planExports(options, random, times);
}

function planMessages(options: SampleOptions, index: number, created: Micros, length: number): MessagePlan[] {
  const messages: MessagePlan[] = [];
  let at = created;
  for (let ordinal = 0; ordinal < length; ordinal += 1) {
    const random = createRandom(options.seed, "message", index, ordinal);
    // Some messages have exactly the instant of the one before.
    if (ordinal > 0 && !random.chance(0.03)) at += 2 * SECOND + random.int(75 * SECOND);
    const messageAt = ordinal === 0 ? created : Math.max(created, coarsen(random, at));
    const times = [{ time: messageAt + SECOND + random.int(2 * SECOND), updatedAt: null }];
    if (random.chance(MESSAGE_AGAIN))
      times.push({ time: messageAt + MINUTE + random.int(HOUR), updatedAt: null });
    const isStrange = random.chance(options.nonstandardShare / 20);
    const id = isStrange ? `メッセージ ${random.hex(8)}` : random.hex(24);
    messages.push({ id, createdAt: messageAt, exports: planExports(options, random, times) });
  }
  return messages;
}

function conversationId(options: SampleOptions, index: number, isTie: boolean): string {
  // Every 200th id exists at two clients.
  if (index % 200 < 2) return createRandom(options.seed, "shared", Math.floor(index / 200)).hex(24);
  const random = createRandom(options.seed, "id", index);
  const id = random.hex(24);
  if (!random.chance(isTie ? options.nonstandardShare * 5 : options.nonstandardShare / 10)) return id;
  // UTF-8 and UTF-16 order disagree on the first two.
  return random.pick([`😀${id}`, `\uff5a${id}`, id.toUpperCase(), `ticket/${id.slice(0, 6)} №7`, `é${id}`]);
}

export function planConversation(options: SampleOptions, index: number): ConversationPlan {
  const random = createRandom(options.seed, "conversation", index);
  const leader = tieLeader(options, index);
  const isTie = tieLeader(options, index + 1) === leader || leader !== index;
  const clientAt = random.int(options.clients.length);
  const tiedAt = Math.floor(leader / options.tieSize);
  const isShared = index % 200 < 2;
  let clientIndex = isTie ? tiedAt % options.clients.length : clientAt;
  if (isShared) clientIndex = index % options.clients.length;
  const created = createdAt(options, "conversation", leader, options.conversations);
  const texts = options.texts ?? [];
  const length = drawCount(random, options.messagesPerConversation * (0.4 + 1.2 * random.next()));
  const script =
    texts.length > 0
      ? followDialog(random.pick(texts), random)
      : writeScript(length, options.nonstandardShare / 2, [options.seed, "script", index]);
  const messages = planMessages(options, index, created, script.length);
  const ended = messages.at(-1)?.createdAt ?? created;
  const ownUsers = Math.ceil((options.endUsers - clientIndex) / options.clients.length);
  const hasEndUser = random.chance(0.8) && ownUsers > 0;
  const endUser = clientIndex + options.clients.length * random.int(Math.max(ownUsers, 1));
  return {
    index,
    client: options.clients[clientIndex] ?? "client",
    id: conversationId(options, index, isTie),
    chatterId: random.hex(24),
    endUserId: hasEndUser ? endUserId(options, endUser) : null,
    createdAt: created,
    script,
    messages,
    exports: planConversationExports(options, random, created, ended),
  };
}

function endUserId(options: SampleOptions, index: number): string {
  return createRandom(options.seed, "end-user-id", index).hex(24);
}

export function planEndUser(options: SampleOptions, index: number): EndUserPlan {
  const random = createRandom(options.seed, "end-user", index);
  const created = createdAt(options, "end-user", index, options.endUsers);
  const times: { time: Micros; updatedAt: Micros | null }[] = [];
  const count = Math.max(1, drawCount(random, 1.5));
  let updatedAt = created;
  for (let at = 0; at < count; at += 1) {
    if (at > 0) updatedAt += random.int(6 * HOUR);
    const saysNothing = random.chance(options.nonstandardShare / 4);
    const shown = Math.max(created, coarsen(random, updatedAt));
    times.push({ time: updatedAt + SECOND, updatedAt: saysNothing ? null : shown });
  }
  return {
    index,
    client: options.clients[index % options.clients.length] ?? "client",
    id: endUserId(options, index),
    createdAt: created,
    exports: planExports(options, random, times),
  };
}
