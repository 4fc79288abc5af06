import { readFileSync } from "node:fs";
import { join } from "node:path";
import { choosePorts, createKafka, type Server } from "@conversation-export/local-stack";
import { clusterIdOf } from "./kafka-cluster.ts";
import type { TestStack } from "./test-stack.ts";

/** Stop it before `stack.stop`, which removes its folder. */
export const startSecondBroker = async (stack: TestStack): Promise<Server> => {
  const id = clusterIdOf(join(stack.dir, "kafka"));
  const { kafkaController } = JSON.parse(readFileSync(join(stack.dir, "ports.json"), "utf8")) as {
    kafkaController: number;
  };
  const { broker } = await choosePorts({ names: ["broker"], fixed: {}, preferred: {} });
  const server = await createKafka({
    folder: join(stack.dir, "kafka-2"),
    port: broker,
    controllerPort: kafkaController,
    joins: { id, nodeId: 2 },
    env: process.env,
    log: () => {},
    onUnexpectedEnd: () => {},
  });
  await server.start();
  return server;
};
