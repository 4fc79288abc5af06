import { namedClients } from "../output/client-names.ts";
import { renderColumns, renderTable } from "../output/print.ts";
import { type Mark, marksOf, runbookOf } from "./marks.ts";
import { failuresOf, type Kafka, PART_NAMES, type Processes, secondsSince, type Status } from "./status.ts";

const UNKNOWN = "?";
const NONE = "-";

/** 42 s, 7 min, 3.5 h, 12 d. */
const duration = (seconds: number): string => {
  if (seconds < 120) return `${seconds} s`;
  if (seconds < 7_200) return `${Math.round(seconds / 60)} min`;
  if (seconds < 172_800) return `${(seconds / 3_600).toFixed(1)} h`;
  return `${Math.round(seconds / 86_400)} d`;
};

const since = (at: Date, instant: number | null): string =>
  instant === null ? NONE : duration(secondsSince(at, instant));

const topics = ({ lag, watermarks, deadLetters }: Status): string => {
  const names = new Set([
    ...(lag.value ?? []).map(({ topic }) => topic),
    ...Object.keys(watermarks.value ?? {}),
    ...(deadLetters.value ?? []).map(({ topic }) => topic),
  ]);
  if (names.size === 0) return "";
  return renderTable(
    ["TOPIC", "LAG", "WATERMARK", "DEAD LETTERS", "LAST HOUR", "NOT REPLAYED"],
    [...names].map((topic) => {
      const behind = lag.value?.find((one) => one.topic === topic);
      const age = watermarks.value?.[topic];
      const own = deadLetters.value?.find((one) => one.topic === topic);
      return [
        topic,
        behind?.lag ?? UNKNOWN,
        age === undefined ? UNKNOWN : age === null ? NONE : duration(age),
        own?.kept ?? UNKNOWN,
        own?.lastHour ?? UNKNOWN,
        own?.notReplayed ?? UNKNOWN,
      ];
    }),
  );
};

const queues = ({ at, queues: asked, held }: Status): string =>
  asked.value === null
    ? ""
    : renderTable(
        ["QUEUE", "WAITING", "OLDEST", "ACTIVE", "PARTS", "DELAYED", "FAILED", "LAST HOUR", "SCHEDULE"],
        asked.value.map((queue) => {
          const hold = held.value?.find(({ name }) => name === queue.name);
          const { nextRunAt } = queue;
          const next = nextRunAt === null ? NONE : `at ${new Date(nextRunAt).toISOString().slice(0, 19)}Z`;
          return [
            queue.name,
            queue.waiting,
            since(at, queue.oldestWaitingSince),
            queue.active,
            queue.parts,
            queue.delayed,
            queue.failed,
            queue.failedSince,
            hold === undefined ? next : `held until ${hold.until.toISOString().slice(0, 19)}Z`,
          ];
        }),
      );

const processCounts = (kafka: Kafka | null, redis: Processes | null): string[] => {
  const takers = redis?.workers ?? null;
  return [
    ...(kafka === null ? [] : [`${kafka.members} ingest in the group`]),
    ...(redis === null
      ? []
      : [takers === null ? "jobs: Redis does not list its clients" : `${takers} jobs connected`]),
  ];
};

const facts = ({ at, windows, erasures, tables, clients, brokers, processes }: Status): string => {
  const rows: [string, string][] = [];
  if (clients.value !== null && clients.value.length > 0) rows.push(["clients", namedClients(clients.value)]);
  if (windows.value !== null) {
    const { open, closed } = windows.value;
    rows.push(["windows", `${open} lines open, ${closed} to be compacted`]);
  }
  if (erasures.value !== null) {
    const { count, awaitingApproval, overdue, oldestReceivedAt } = erasures.value;
    const oldest = oldestReceivedAt === null ? "" : `, the oldest for ${since(at, oldestReceivedAt)}`;
    rows.push(["erasures", `${count} open${oldest}; ${awaitingApproval} await approval, ${overdue} overdue`]);
  }
  const counts = processCounts(brokers.value, processes.value);
  if (counts.length > 0) rows.push(["processes", counts.join("; ")]);
  if (processes.value !== null) rows.push(["Redis", processes.value.redis ?? UNKNOWN]);
  if (tables.value !== null) {
    const { clickhouse, applied, pending, changed, later } = tables.value;
    const other = Object.entries({
      "not applied": pending,
      "applied otherwise": changed,
      "of a newer version": later,
    });
    const reported = other.flatMap(([what, names]) =>
      names.length === 0 ? [] : [`${names.join(", ")} ${what}`],
    );
    rows.push(["ClickHouse", clickhouse]);
    rows.push(["migrations", [`${applied} applied`, ...reported].join("; ")]);
  }
  if (brokers.value !== null) rows.push(["Kafka", `${brokers.value.brokers} brokers`]);
  return rows.length === 0 ? "" : renderColumns(rows);
};

const marked = (marks: readonly Mark[]): string =>
  renderColumns(
    marks.map(({ part, alert, found }) => ["!", alert, `${PART_NAMES[part]}: ${found}`, runbookOf(alert)]),
  );

export const renderStatus = (status: Status): string => {
  const marks = marksOf(status);
  const failures = failuresOf(status);
  const unasked = failures.flatMap(({ parts }) => parts).length;
  const none = unasked === 0 ? "no alert would fire" : "nothing alerts in what was asked";
  const found = [
    marks.length === 0 ? none : `${marks.length} would alert`,
    ...(unasked === 0 ? [] : [`${unasked} ${unasked === 1 ? "part" : "parts"} could not be asked`]),
  ];
  const head = `${status.at.toISOString().slice(0, 19)}Z  ${found.join(", ")}`;
  return [
    head,
    topics(status),
    queues(status),
    facts(status),
    marked(marks),
    failures
      .map(({ parts, reason }) => `? ${parts.map((part) => PART_NAMES[part]).join(", ")}: ${reason}`)
      .join("\n"),
  ]
    .filter((block) => block !== "")
    .join("\n\n");
};

export const statusFields = (status: Status) => {
  const { at, brokers, erasures, tables, processes } = status;
  const { clickhouse = null, ...migrations } = tables.value ?? {};
  const iso = (ms: number | null): string | null => (ms === null ? null : new Date(ms).toISOString());
  return {
    at: at.toISOString(),
    lag: status.lag.value,
    dead_letters:
      status.deadLetters.value?.map(({ topic, kept, lastHour, notReplayed }) => ({
        topic,
        kept,
        last_hour: lastHour,
        not_replayed: notReplayed,
      })) ?? null,
    watermark_age_seconds: status.watermarks.value,
    unregistered_clients:
      status.clients.value?.map(({ clientId, records }) => ({ client_id: clientId, records })) ?? null,
    windows: status.windows.value,
    erasures:
      erasures.value === null
        ? null
        : {
            open: erasures.value.count,
            awaiting_approval: erasures.value.awaitingApproval,
            overdue: erasures.value.overdue,
            oldest_received_at: iso(erasures.value.oldestReceivedAt),
          },
    queues:
      status.queues.value?.map(({ name, failedSince, oldestWaitingSince, nextRunAt, ...counts }) => ({
        queue: name,
        ...counts,
        failed_last_hour: failedSince,
        oldest_waiting_since: iso(oldestWaitingSince),
        next_run_at: iso(nextRunAt),
      })) ?? null,
    held: status.held.value?.map(({ name, ...hold }) => ({ queue: name, ...hold })) ?? null,
    processes: { ingest: brokers.value?.members ?? null, jobs: processes.value?.workers ?? null },
    versions: {
      clickhouse,
      redis: processes.value?.redis ?? null,
      kafka_brokers: brokers.value?.brokers ?? null,
      migrations: tables.value === null ? null : migrations,
    },
    marks: marksOf(status).map((mark) => ({
      ...mark,
      part: PART_NAMES[mark.part],
      runbook: runbookOf(mark.alert),
    })),
    failed: failuresOf(status).map(({ parts, reason }) => ({
      parts: parts.map((part) => PART_NAMES[part]),
      reason,
    })),
  };
};
