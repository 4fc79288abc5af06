import {
  createAdmin,
  createGroupProgress,
  createDeadLetterReader,
  createProducer,
  createRangeReader,
} from "@conversation-export/bus";
import { typesByTopic } from "@conversation-export/domain";
import type { Logger } from "@conversation-export/runtime";
import type { Config } from "../config.ts";
import { createBusClients } from "./bus-clients.ts";

export type Bus = ReturnType<typeof createBus>;

export const createBus = (deps: {
  readonly config: Pick<Config, "kafka" | "groupId" | "topics">;
  readonly application: string;
  readonly log: Logger;
  /** Such as rejected credentials. */
  readonly onFatal: (error: unknown) => void;
}) => {
  const { config, application, log, onFatal } = deps;
  const connection = { ...config.kafka, clientId: application, log };
  const reader = createRangeReader(connection);
  const producer = createProducer({ ...connection, compression: "zstd" });
  const progress = createGroupProgress({ ...connection, groupId: config.groupId });
  const admin = createAdmin(connection);
  const types = typesByTopic(config.topics);
  const topics = [...types.keys()];
  return {
    ...createBusClients({ clients: [reader, producer, progress, admin], log, onFatal }),
    types,
    topics,
    reader,
    producer,
    progress,
    admin,
    deadLetters: createDeadLetterReader({ reader, topics }),
  };
};
