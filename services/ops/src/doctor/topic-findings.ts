import type { ServiceSettings } from "../config.ts";
import { TIMESTAMP_TYPE } from "../setup/topics.ts";
import { type Finding, type Findings, findingsOf } from "./finding.ts";

const { ok, warning, problem } = findingsOf("Kafka");

const DAY_MS = 86_400_000;
/** Ingest may stop for days. */
const SHORT_RETENTION_MS = 3 * DAY_MS;

export type TopicKind = "events" | "dead-letters" | "commands";

export type TopicFacts = {
  readonly topic: string;
  readonly kind: TopicKind;
  readonly partitions: number;
  readonly config: Readonly<Record<string, string>>;
  /** As `topics create` sets them. */
  readonly wanted: Readonly<Record<string, string>>;
};

const days = (ms: number): string => `${Number((ms / DAY_MS).toFixed(1))} days`;

const retentionFinding = ({ topic, kind, config }: TopicFacts, settings: ServiceSettings): Finding => {
  const name = `retention of ${topic}`;
  const retentionMs = Number(config["retention.ms"]);
  if (retentionMs < 0) {
    return warning(
      name,
      "unlimited",
      "set retention.ms: erased records stay in Kafka until the topic deletes them",
    );
  }
  if (retentionMs < SHORT_RETENTION_MS) {
    return warning(
      name,
      days(retentionMs),
      kind === "events"
        ? "raise retention.ms: when ingest stops for longer, it loses events"
        : "raise retention.ms: dead letters older than this cannot be replayed",
    );
  }
  if (kind === "dead-letters") return ok(name, days(retentionMs));
  if (!settings.landing && retentionMs < settings.landingDays * DAY_MS) {
    return warning(
      name,
      `${days(retentionMs)}, while LANDING is off`,
      "a backfill cannot go further back: switch LANDING on or raise retention.ms",
    );
  }
  const landing = settings.landing ? `; the landing table keeps ${settings.landingDays} days` : "";
  return ok(name, `${days(retentionMs)}${landing}`);
};

export const topicFindings = (facts: TopicFacts, settings: ServiceSettings): Findings => {
  const { topic, kind, config, wanted, partitions } = facts;
  const name = `topic ${topic}`;
  const alter = (setting: string) =>
    `kafka-configs.sh --alter --entity-type topics --entity-name ${topic} --add-config ${setting}`;
  const wrong: Finding[] = [];
  const timestamps = config["message.timestamp.type"] ?? "unknown";
  if (timestamps !== TIMESTAMP_TYPE) {
    wrong.push(
      problem(
        name,
        `message.timestamp.type is ${timestamps}`,
        `the clocks of producers would decide which events are late: ${alter(`message.timestamp.type=${TIMESTAMP_TYPE}`)}`,
      ),
    );
  }
  const cleanup = config["cleanup.policy"] ?? "delete";
  if (cleanup !== "delete") {
    wrong.push(
      problem(
        name,
        `cleanup.policy is ${cleanup}`,
        `compaction removes exports before they are read: ${alter("cleanup.policy=delete")}`,
      ),
    );
  }
  const wantedBytes = Number(wanted["max.message.bytes"] ?? 0);
  const bytes = Number(config["max.message.bytes"]);
  if (bytes < wantedBytes) {
    wrong.push(
      problem(
        name,
        `max.message.bytes is ${bytes}`,
        `a large rejected event does not fit together with its reason: ${alter(`max.message.bytes=${wantedBytes}`)}`,
      ),
    );
  }
  const settled = wrong.length > 0 ? wrong : [ok(name, `${partitions} partitions, dated on arrival`)];
  return kind === "commands" ? settled : [...settled, retentionFinding(facts, settings)];
};
