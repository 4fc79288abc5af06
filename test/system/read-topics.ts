import { type BusMessage, type Connection, createConsumer } from "@conversation-export/bus";
import { until } from "./until.ts";

export const readTopics = async (
  connection: Connection,
  topics: readonly string[],
  count: number,
): Promise<BusMessage[]> => {
  const messages: BusMessage[] = [];
  const crashes: unknown[] = [];
  const consumer = createConsumer({
    ...connection,
    groupId: `reader-${Date.now()}`,
    topics,
    onMessages: (slice) => {
      messages.push(...slice.messages);
      return "continue";
    },
    onAssigned: () => {},
    onRebalancing: () => {},
    onCrash: (error) => crashes.push(error),
  });
  await consumer.start();
  try {
    await until(`${count} messages of ${topics.join(", ")} are read`, 60_000, () => {
      if (crashes.length > 0) throw crashes[0];
      return messages.length >= count;
    });
  } finally {
    await consumer.stop();
  }
  return messages;
};
