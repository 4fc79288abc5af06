import type { NewTopic } from "@conversation-export/bus";
import { deadLetterTopic } from "@conversation-export/domain";
import type { CommandDeps } from "./command-deps.ts";
import type { BusConfig } from "./config.ts";
import { withAdmin } from "./connections.ts";
import { CommandError, innermostMessage } from "./explain.ts";
import { renderJson, renderTable } from "./print.ts";

/** The broker's default, 1 MiB and the overhead of a batch. */
const DEFAULT_MAX_MESSAGE_BYTES = 1_048_588;
/** Clocks of producers must not decide what is late or in the future. */
export const TIMESTAMP_TYPE = "LogAppendTime";

export type TopicOptions = {
  readonly partitions: number;
  readonly replication: number;
  /** Which of both were given and not taken by default; null: this one was not. */
  readonly asked: { readonly partitions: number | null; readonly replication: number | null };
  /** How long Kafka may stay away. */
  readonly timeoutMs: number;
  readonly json: boolean;
};

/** The topics of the events, of their dead letters and of the SMS triggers, as they are to be made. */
export const wantedTopics = (
  { topics, smsTopic }: Pick<BusConfig, "topics" | "smsTopic">,
  options: Pick<TopicOptions, "partitions" | "replication">,
): NewTopic[] => {
  const common = { partitions: options.partitions, replicationFactor: options.replication };
  const config = { "message.timestamp.type": TIMESTAMP_TYPE };
  // A payload at the limit of its topic must fit together with the headers that say why it was refused.
  const deadLetterConfig = { ...config, "max.message.bytes": String(2 * DEFAULT_MAX_MESSAGE_BYTES) };
  return [
    ...topics.map((topic) => ({ topic, ...common, config })),
    ...topics.map((topic) => ({ topic: deadLetterTopic(topic), ...common, config: deadLetterConfig })),
    { topic: smsTopic, ...common, config },
  ];
};

/** How a topic that was there differs from what was asked for, and what to do; null: it does not. */
export const topicDifference = (
  { topic, partitions, replicas }: { topic: string; partitions: number; replicas: number },
  asked: TopicOptions["asked"],
): string | null => {
  const differences: string[] = [];
  if (asked.partitions !== null && partitions !== asked.partitions) {
    const advice =
      partitions < asked.partitions
        ? `\`kafka-topics.sh --alter --topic ${topic} --partitions ${asked.partitions}\` adds them`
        : "Kafka takes none away";
    differences.push(`it has ${partitions} partitions, not ${asked.partitions} (${advice})`);
  }
  if (asked.replication !== null && replicas !== asked.replication) {
    differences.push(
      `each has ${replicas} replicas, not ${asked.replication} (\`kafka-reassign-partitions.sh\` changes that)`,
    );
  }
  return differences.length === 0 ? null : `warning: ${topic} stays as it is: ${differences.join(", ")}`;
};

/**
 * Makes the topics that do not exist and prints how each of them is now; warns of those that are there and differ.
 * Throws `CommandError` when Kafka does not answer in time, and then leaves an attempt to connect behind; throws
 * `CommandError` too when it refuses.
 */
export const createTopics = async (
  config: BusConfig,
  options: TopicOptions,
  { print, say }: Pick<CommandDeps, "print" | "say">,
): Promise<void> => {
  const topics = [...config.topics, config.smsTopic];
  if (new Set(topics).size < topics.length) {
    throw new CommandError(`the topics ${topics.join(", ")} must differ: check the TOPIC_ variables`);
  }
  await withAdmin(
    config,
    async (admin) => {
      const rows = [];
      const before = new Set(await admin.listTopics());
      for (const wanted of wantedTopics(config, options)) {
        try {
          await admin.createTopics([wanted]);
        } catch (error) {
          throw new CommandError(
            `Kafka does not make the topic ${wanted.topic}: ${innermostMessage(error)}`,
            {
              cause: error,
            },
          );
        }
        const settings = await admin.topicConfig(wanted.topic);
        rows.push({
          topic: wanted.topic,
          partitions: (await admin.fetchOffsets(wanted.topic)).length,
          timestamps: settings["message.timestamp.type"] ?? "",
          max_message_bytes: Number(settings["max.message.bytes"]),
          replicas: await admin.fetchReplicas(wanted.topic),
          state: before.has(wanted.topic) ? "unchanged" : "created",
        });
      }
      print(
        options.json
          ? renderJson(rows)
          : renderTable(
              ["TOPIC", "PARTITIONS", "REPLICAS", "TIMESTAMPS", "MAX MESSAGE BYTES", "STATE"],
              rows.map((row) => [
                row.topic,
                row.partitions,
                row.replicas,
                row.timestamps,
                row.max_message_bytes,
                row.state,
              ]),
            ),
      );
      for (const row of rows) {
        const difference = topicDifference(row, options.asked);
        if (difference !== null) say(difference);
      }
    },
    options.timeoutMs,
  );
};
