import { REFUSES_WRITES } from "../explain/explain.ts";
import { EXIT } from "../explain/exit-code.ts";
import { failuresOf, type PartName, type Status } from "./status.ts";
import { patienceOf, THRESHOLDS } from "./thresholds.ts";

/** Alerts fire if it stays. */
export type Mark = { readonly part: PartName; readonly alert: string; readonly found: string };

const secondsSince = (at: Date, instant: number): number => Math.floor((at.getTime() - instant) / 1000);

const ofTopics = ({ lag, watermarks, deadLetters }: Status): Mark[] => {
  const found: Mark[] = [];
  for (const { topic, lag: messages, filled, lost } of lag.value ?? []) {
    const age = watermarks.value?.[topic] ?? null;
    if (lost > 0)
      found.push({ part: "lag", alert: "BusRecordsLost", found: `${lost} of ${topic} were deleted unread` });
    if (messages === null && filled && (age === null || age >= THRESHOLDS.unknownLagWatermarkSeconds))
      found.push({ part: "lag", alert: "IngestLagUnknown", found: `the lag of ${topic} is unknown` });
    if (messages !== null && messages > THRESHOLDS.lagRecords)
      found.push({ part: "lag", alert: "IngestLag", found: `${topic} is ${messages} messages behind` });
  }
  for (const [topic, age] of Object.entries(watermarks.value ?? {})) {
    if (age === null)
      found.push({ part: "watermarks", alert: "WatermarkOld", found: `${topic} has no watermark` });
    else if (age > THRESHOLDS.watermarkSeconds)
      found.push({ part: "watermarks", alert: "WatermarkOld", found: `that of ${topic} is ${age} s old` });
  }
  for (const { topic, lastHour } of deadLetters.value ?? [])
    if (lastHour > 0)
      found.push({
        part: "deadLetters",
        alert: "DeadLetters",
        found: `${lastHour} of ${topic} within an hour`,
      });
  return found;
};

const ofWarehouse = ({ at, windows, erasures }: Status): Mark[] => {
  const found: Mark[] = [];
  const { open = 0, closed = 0 } = windows.value ?? {};
  if (open > THRESHOLDS.openWindows)
    found.push({ part: "windows", alert: "UploadWindowsOverdue", found: `${open} lines are open` });
  if (closed > THRESHOLDS.closedWindows)
    found.push({
      part: "windows",
      alert: "UploadWindowsOverdue",
      found: `${closed} lines are to be compacted`,
    });
  const requests = erasures.value;
  if (requests === null) return found;
  const { awaitingApproval, overdue, oldestReceivedAt } = requests;
  const age = oldestReceivedAt === null ? 0 : secondsSince(at, oldestReceivedAt);
  if (overdue > 0) found.push({ part: "erasures", alert: "ErasureOverdue", found: `${overdue} are overdue` });
  if (age > THRESHOLDS.erasureSeconds)
    found.push({ part: "erasures", alert: "ErasureSlow", found: `the oldest is open for ${age} s` });
  if (awaitingApproval > 0)
    found.push({
      part: "erasures",
      alert: "ErasureAwaitsApproval",
      found: `${awaitingApproval} wait for an operator`,
    });
  return found;
};

const ofProcesses = ({ brokers, processes }: Status): Mark[] => {
  const found: Mark[] = [];
  if (processes.value?.workers === 0)
    found.push({ part: "processes", alert: "ComponentDown", found: "no process of jobs is connected" });
  if (brokers.value?.members === 0)
    found.push({ part: "brokers", alert: "ComponentDown", found: "no process of ingest is in the group" });
  return found;
};

const ofQueues = ({ at, queues, held }: Status): Mark[] => {
  const found: Mark[] = [];
  for (const { name, failedSince, oldestWaitingSince, nextRunAt } of queues.value ?? []) {
    const waited = oldestWaitingSince === null ? 0 : secondsSince(at, oldestWaitingSince);
    const late = nextRunAt === null ? 0 : secondsSince(at, nextRunAt);
    if (failedSince > 0)
      found.push({ part: "queues", alert: "JobFailed", found: `${failedSince} of ${name} within an hour` });
    if (waited > patienceOf(name))
      found.push({
        part: "queues",
        alert: "JobQueueOld",
        found: `a job of ${name} has waited for ${waited} s`,
      });
    if (late > patienceOf(name))
      found.push({ part: "queues", alert: "ScheduleStalled", found: `${name} is ${late} s late` });
  }
  for (const { name, job } of held.value ?? [])
    found.push({ part: "held", alert: "ScheduleHeld", found: `${name}, since ${job} failed for good` });
  return found;
};

/** The first part is named. */
const SERVERS: readonly {
  readonly alert: string;
  readonly name: string;
  readonly parts: readonly PartName[];
}[] = [
  { alert: "RedisAway", name: "Redis", parts: ["processes", "queues", "held"] },
  {
    alert: "IngestInsertsFail",
    name: "ClickHouse",
    parts: ["tables", "watermarks", "windows", "erasures", "clients"],
  },
  { alert: "IngestLagUnknown", name: "Kafka", parts: ["lag", "deadLetters", "brokers"] },
];

const ofServers = (status: Status): Mark[] => {
  const failed = failuresOf(status);
  const troubleOf = (part: PartName): string | undefined => {
    const failure = failed.find(({ parts }) => parts.includes(part));
    if (failure?.exitCode === EXIT.away) return "does not answer this command";
    return failure?.reason.includes(REFUSES_WRITES) === true ? REFUSES_WRITES : undefined;
  };
  return SERVERS.flatMap(({ alert, name, parts }) => {
    const part = parts.find((one) => troubleOf(one) !== undefined);
    return part === undefined ? [] : [{ part, alert, found: `${name} ${troubleOf(part)}` }];
  });
};

export const marksOf = (status: Status): readonly Mark[] => [
  ...ofServers(status),
  ...ofTopics(status),
  ...ofWarehouse(status),
  ...ofQueues(status),
  ...ofProcesses(status),
];

export const runbookOf = (alert: string): string => `docs/runbooks/${alert}.md`;
