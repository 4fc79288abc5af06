import type { Admin } from "@conversation-export/bus";
import { deadLetterTopic } from "@conversation-export/domain";
import { isRetryable, retry } from "@conversation-export/runtime";
import type { CommandDeps, JsonOption } from "../commands/command-deps.ts";
import type { BusConfig } from "../config.ts";
import { withAdmin } from "../connect/connections.ts";
import { CommandError, innermostMessage } from "../explain/explain.ts";
import { renderJson, renderTable } from "../output/print.ts";

/** The broker's default: 1 MiB and the overhead of a batch. */
const DEFAULT_MAX_MESSAGE_BYTES = 1_048_588;
/** Producers' clocks must not decide which events are late. */
export const TIMESTAMP_TYPE = "LogAppendTime";

export const TOPIC_DEFAULTS = { partitions: 6, replication: 1 } as const;

export type TopicOptions = {
  /** Absent: the default for a new topic, any for an existing one; `replication` too. */
  readonly partitions?: number;
  readonly replication?: number;
  /** Seconds. */
  readonly timeout: number;
} & JsonOption;

export type WantedTopic = {
  readonly topic: string;
  readonly kind: "events" | "dead-letters" | "commands";
  readonly config: Readonly<Record<string, string>>;
};

export const wantedTopics = ({ topics, smsTopic }: BusConfig): WantedTopic[] => {
  const config = { "message.timestamp.type": TIMESTAMP_TYPE };
  // The largest payload must fit with the headers.
  const deadLetterConfig = { ...config, "max.message.bytes": String(2 * DEFAULT_MAX_MESSAGE_BYTES) };
  return [
    ...topics.map((topic) => ({ topic, kind: "events" as const, config })),
    ...topics.map((topic) => ({
      topic: deadLetterTopic(topic),
      kind: "dead-letters" as const,
      config: deadLetterConfig,
    })),
    { topic: smsTopic, kind: "commands", config },
  ];
};

/** null: it does not differ. */
export const topicDifference = (
  { topic, partitions, replicas }: { topic: string; partitions: number; replicas: number },
  asked: Pick<TopicOptions, "partitions" | "replication">,
): string | null => {
  const differences: string[] = [];
  if (asked.partitions !== undefined && partitions !== asked.partitions) {
    const advice =
      partitions < asked.partitions
        ? `\`kafka-topics.sh --alter --topic ${topic} --partitions ${asked.partitions}\` adds them`
        : "Kafka cannot remove partitions";
    differences.push(`it has ${partitions} partitions, not ${asked.partitions} (${advice})`);
  }
  if (asked.replication !== undefined && replicas !== asked.replication) {
    differences.push(
      `each has ${replicas} replicas, not ${asked.replication} (\`kafka-reassign-partitions.sh\` changes that)`,
    );
  }
  return differences.length === 0 ? null : `warning: ${topic} stays as it is: ${differences.join(", ")}`;
};

const describeTopic = async (admin: Admin, topic: string) => {
  const settings = await admin.topicConfig(topic);
  return {
    topic,
    partitions: (await admin.fetchOffsets(topic)).length,
    timestamps: settings["message.timestamp.type"] ?? "",
    max_message_bytes: Number(settings["max.message.bytes"]),
    replicas: await admin.fetchReplicas(topic),
  };
};

/** @throws CommandError; an attempt to connect may go on */
export const createTopics = async (
  config: BusConfig,
  options: TopicOptions,
  { print, say }: Pick<CommandDeps, "print" | "say">,
): Promise<void> => {
  const { partitions, replication, json } = { ...TOPIC_DEFAULTS, ...options };
  const timeoutMs = options.timeout * 1000;
  const topics = [...config.topics, config.smsTopic];
  if (new Set(topics).size < topics.length) {
    throw new CommandError(`the topics ${topics.join(", ")} must differ: check the TOPIC_ variables`);
  }
  await withAdmin(
    config,
    async (admin) => {
      const rows = [];
      // Freshly started brokers may not know their part of the cluster yet.
      const patiently = <T>(ask: () => Promise<T>): Promise<T> =>
        retry(ask, { deadlineMs: timeoutMs, retryable: isRetryable });
      const before = new Set(await patiently(() => admin.listTopics()));
      for (const { topic, config: settings } of wantedTopics(config)) {
        const wanted = { topic, partitions, replicationFactor: replication, config: settings };
        try {
          await admin.createTopics([wanted], timeoutMs);
        } catch (error) {
          throw new CommandError(`Kafka does not create the topic ${topic}: ${innermostMessage(error)}`, {
            cause: error,
          });
        }
        const made = await patiently(() => describeTopic(admin, topic));
        rows.push({ ...made, state: before.has(topic) ? "unchanged" : "created" });
      }
      print(
        json === true
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
        const difference = topicDifference(row, options);
        if (difference !== null) say(difference);
      }
    },
    timeoutMs,
  );
};
