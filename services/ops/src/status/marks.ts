import { REFUSES_WRITES } from "../explain/explain.ts";
import { EXIT } from "../explain/exit-code.ts";
import { failuresOf, type PartName, secondsSince, type Status } from "./status.ts";
import { patienceOf, THRESHOLDS } from "./thresholds.ts";

/** Alerts fire if it stays. */
export type Mark = { readonly part: PartName; readonly alert: string; readonly found: string };

const mark = (part: PartName, alert: string, found: string): Mark => ({ part, alert, found });

const ofTopics = ({ lag, watermarks, deadLetters }: Status): Mark[] => {
  const found: Mark[] = [];
  for (const { topic, lag: messages, lost } of lag.value ?? []) {
    if (lost > 0) found.push(mark("lag", "BusRecordsLost", `${lost} of ${topic} were deleted unread`));
    if (messages > THRESHOLDS.lagRecords)
      found.push(mark("lag", "IngestLag", `${topic} is ${messages} messages behind`));
  }
  for (const [topic, age] of Object.entries(watermarks.value ?? {})) {
    if (age === null) found.push(mark("watermarks", "WatermarkOld", `${topic} has no watermark`));
    else if (age > THRESHOLDS.watermarkSeconds)
      found.push(mark("watermarks", "WatermarkOld", `that of ${topic} is ${age} s old`));
  }
  for (const { topic, lastHour } of deadLetters.value ?? [])
    if (lastHour > 0)
      found.push(mark("deadLetters", "DeadLetters", `${lastHour} of ${topic} within an hour`));
  return found;
};

const ofWarehouse = ({ at, windows, erasures }: Status): Mark[] => {
  const found: Mark[] = [];
  const { open = 0, closed = 0 } = windows.value ?? {};
  if (open > THRESHOLDS.openWindows)
    found.push(mark("windows", "UploadWindowsOverdue", `${open} lines are open`));
  if (closed > THRESHOLDS.closedWindows)
    found.push(mark("windows", "UploadWindowsOverdue", `${closed} lines are to be compacted`));
  const requests = erasures.value;
  if (requests === null) return found;
  const { awaitingApproval, overdue, oldestReceivedAt } = requests;
  const age = oldestReceivedAt === null ? 0 : secondsSince(at, oldestReceivedAt);
  if (overdue > 0) found.push(mark("erasures", "ErasureOverdue", `${overdue} are overdue`));
  if (age > THRESHOLDS.erasureSeconds)
    found.push(mark("erasures", "ErasureSlow", `the oldest is open for ${age} s`));
  if (awaitingApproval > 0)
    found.push(mark("erasures", "ErasureAwaitsApproval", `${awaitingApproval} wait for an operator`));
  return found;
};

const ofProcesses = ({ brokers, processes }: Status): Mark[] => {
  const found: Mark[] = [];
  if (processes.value?.workers === 0)
    found.push(mark("processes", "ComponentDown", "no process of jobs is connected"));
  if (brokers.value?.members === 0)
    found.push(mark("brokers", "ComponentDown", "no process of ingest is in the group"));
  return found;
};

const ofQueues = ({ at, queues, held }: Status): Mark[] => {
  const found: Mark[] = [];
  for (const { name, failedSince, oldestWaitingSince, nextRunAt } of queues.value ?? []) {
    const waited = oldestWaitingSince === null ? 0 : secondsSince(at, oldestWaitingSince);
    const late = nextRunAt === null ? 0 : secondsSince(at, nextRunAt);
    if (failedSince > 0) found.push(mark("queues", "JobFailed", `${failedSince} of ${name} within an hour`));
    if (waited > patienceOf(name))
      found.push(mark("queues", "JobQueueOld", `a job of ${name} has waited for ${waited} s`));
    if (late > patienceOf(name)) found.push(mark("queues", "ScheduleStalled", `${name} is ${late} s late`));
  }
  for (const { name, job } of held.value ?? [])
    found.push(mark("held", "ScheduleHeld", `${name}, since ${job} failed for good`));
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
    return part === undefined ? [] : [mark(part, alert, `${name} ${troubleOf(part)}`)];
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
