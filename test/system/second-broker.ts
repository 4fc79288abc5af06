import { readFileSync } from "node:fs";
import { join } from "node:path";
import { choosePorts, createKafka, type Server } from "@conversation-export/local-stack";
import type { TestStack } from "./test-stack.ts";

/** Starts broker 2 in the cluster of a stack; `stack.stop` removes its folder, so stop it before. */
export const startSecondBroker = async (stack: TestStack): Promise<Server> => {
  const properties = readFileSync(join(stack.dir, "kafka", "data", "meta.properties"), "utf8");
  const id = /^cluster\.id=(.+)$/m.exec(properties)?.[1];
  if (id === undefined) throw new Error("the first broker does not tell the id of its cluster");
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
