import type { ServiceSettings } from "../config.ts";
import { TIMESTAMP_TYPE } from "../topics.ts";
import { type Finding, type Findings, findingsOf } from "./finding.ts";

const { ok, warning, problem } = findingsOf("Kafka");

const DAY_MS = 86_400_000;
/** An ingest that stands still for longer would lose events, and who looks at letters later finds none. */
const SHORT_RETENTION_MS = 3 * DAY_MS;

/** What a topic carries: events, dead letters, or the commands for SMS. */
export type TopicKind = "events" | "letters" | "commands";

export type TopicFacts = {
  readonly topic: string;
  readonly kind: TopicKind;
  readonly partitions: number;
  /** As the broker holds it. */
  readonly config: Readonly<Record<string, string>>;
  /** What `topics create` would have set. */
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
      "set retention.ms: what is erased from the warehouse stays in Kafka for as long as the topic keeps it",
    );
  }
  if (retentionMs < SHORT_RETENTION_MS) {
    return warning(
      name,
      days(retentionMs),
      kind === "events"
        ? "raise retention.ms: an ingest that stands still for longer loses events"
        : "raise retention.ms: letters that nobody looks at in time cannot be replayed",
    );
  }
  if (kind === "letters") return ok(name, days(retentionMs));
  if (!settings.landing && retentionMs < settings.landingDays * DAY_MS) {
    return warning(
      name,
      `${days(retentionMs)}, while LANDING is off`,
      "a backfill reaches no further back than that: switch LANDING on or raise retention.ms",
    );
  }
  const landing = settings.landing ? `; the landing table keeps ${settings.landingDays} days` : "";
  return ok(name, `${days(retentionMs)}${landing}`);
};

/** Whether a topic is set as the services need it. */
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
        `clocks of producers decide what lies in the future: ${alter(`message.timestamp.type=${TIMESTAMP_TYPE}`)}`,
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
        `a refused event does not fit beside its reason: ${alter(`max.message.bytes=${wantedBytes}`)}`,
      ),
    );
  }
  const settled = wrong.length > 0 ? wrong : [ok(name, `${partitions} partitions, dated on arrival`)];
  return kind === "commands" ? settled : [...settled, retentionFinding(facts, settings)];
};
