import type { SmsTriggerEvent } from "@conversation-export/domain";
import { retry } from "@conversation-export/runtime";
import { readTopics } from "./read-topics.ts";
import type { System } from "./system.ts";

const TOPIC = "sms-triggers";

export const createTriggerEvents = (system: System) => {
  const count = async (): Promise<number> =>
    // A restarted broker takes a moment to lead again.
    (await retry(() => system.admin.fetchOffsets(TOPIC), { deadlineMs: 30_000 })).reduce(
      (sum, { start, end }) => sum + end - start,
      0,
    );
  const read = async () => {
    const messages = await readTopics(system.connection, [TOPIC], await count());
    return messages.map((message) => ({
      message,
      event: JSON.parse(String(message.value)) as SmsTriggerEvent,
    }));
  };
  return { count, read };
};
