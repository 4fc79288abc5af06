import type { Kafka } from "kafkajs";

/** A transaction of a producer of its own; the project has none. */
export const openTransaction = async (kafka: Kafka, topic: string, id: string) => {
  const own = kafka.producer({ transactionalId: `${topic}-${id}`, maxInFlightRequests: 1, idempotent: true });
  await own.connect();
  const transaction = await own.transaction();
  return {
    write: (value: string) =>
      transaction.send({ topic, messages: [{ key: Buffer.alloc(4), value, partition: 0 }] }),
    abort: () => transaction.abort(),
    commit: () => transaction.commit(),
    close: () => own.disconnect(),
  };
};
