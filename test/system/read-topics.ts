import { randomUUID } from "node:crypto";
import {
  type BusMessage,
  type BusRange,
  type Connection,
  createConsumer,
  createRangeReader,
} from "@conversation-export/bus";
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
    groupId: `reader-${randomUUID()}`,
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

export const readRange = async (connection: Connection, range: BusRange): Promise<BusMessage[]> => {
  const reader = createRangeReader(connection);
  await reader.start();
  try {
    const messages: BusMessage[] = [];
    for await (const some of reader.read(range)) messages.push(...some);
    return messages;
  } finally {
    await reader.stop();
  }
};
