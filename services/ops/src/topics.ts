import { type Admin, createAdmin, type NewTopic } from "@conversation-export/bus";
import { createLogger } from "@conversation-export/runtime";
import type { BusConfig } from "./config.ts";
import { CommandError, innermostMessage } from "./explain.ts";
import { type Print, renderJson, renderTable } from "./print.ts";

/** The broker's default, 1 MiB and the overhead of a batch. */
const DEFAULT_MAX_MESSAGE_BYTES = 1_048_588;
/** Clocks of producers must not decide what is late or in the future. */
const TIMESTAMP_TYPE = "LogAppendTime";

export type TopicOptions = {
  readonly partitions: number;
  readonly replication: number;
  /** How long Kafka may stay away. */
  readonly timeoutMs: number;
  readonly json: boolean;
};

const deadLettersOf = (topic: string): string => `${topic}.dead-letter`;

/** The topics of the events, of their dead letters and of the SMS triggers, as they are to be made. */
export const wantedTopics = (
  { topics, smsTopic }: Pick<BusConfig, "topics" | "smsTopic">,
  options: TopicOptions,
): NewTopic[] => {
  const common = { partitions: options.partitions, replicationFactor: options.replication };
  const config = { "message.timestamp.type": TIMESTAMP_TYPE };
  // A payload at the limit of its topic must fit together with the headers that say why it was refused.
  const deadLetterConfig = { ...config, "max.message.bytes": String(2 * DEFAULT_MAX_MESSAGE_BYTES) };
  return [
    ...topics.map((topic) => ({ topic, ...common, config })),
    ...topics.map((topic) => ({ topic: deadLettersOf(topic), ...common, config: deadLetterConfig })),
    { topic: smsTopic, ...common, config },
  ];
};

const connectWithin = async (admin: Admin, brokers: readonly string[], timeoutMs: number): Promise<void> => {
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(() => {
    const where = brokers.join(", ");
    late.reject(
      new CommandError(`Kafka does not answer at ${where}: check KAFKA_BROKERS and that the brokers run`),
    );
  }, timeoutMs);
  try {
    await Promise.race([admin.start(), late.promise]);
  } finally {
    clearTimeout(timer);
  }
};

/**
 * Makes the topics that do not exist and prints how each of them is now. Throws `CommandError` when Kafka does
 * not answer in time, and then leaves an attempt to connect behind; throws `CommandError` too when it refuses.
 */
export const createTopics = async (config: BusConfig, options: TopicOptions, print: Print): Promise<void> => {
  const { brokers } = config;
  const topics = [...config.topics, config.smsTopic];
  if (new Set(topics).size < topics.length) {
    throw new CommandError(`the topics ${topics.join(", ")} must differ: check the TOPIC_ variables`);
  }
  const log = createLogger({ service: "ops", level: "silent" });
  const admin = createAdmin({ brokers, clientId: "export-ops", log });
  await connectWithin(admin, brokers, options.timeoutMs);
  try {
    const rows = [];
    for (const wanted of wantedTopics(config, options)) {
      try {
        await admin.createTopics([wanted]);
      } catch (error) {
        throw new CommandError(`Kafka does not make the topic ${wanted.topic}: ${innermostMessage(error)}`, {
          cause: error,
        });
      }
      const settings = await admin.topicConfig(wanted.topic);
      rows.push({
        topic: wanted.topic,
        partitions: (await admin.fetchOffsets(wanted.topic)).length,
        timestamps: settings["message.timestamp.type"] ?? "",
        max_message_bytes: Number(settings["max.message.bytes"]),
      });
    }
    print(
      options.json
        ? renderJson(rows)
        : renderTable(
            ["TOPIC", "PARTITIONS", "TIMESTAMPS", "MAX MESSAGE BYTES"],
            rows.map((row) => [row.topic, row.partitions, row.timestamps, row.max_message_bytes]),
          ),
    );
  } finally {
    await admin.stop();
  }
};
