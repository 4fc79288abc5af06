import { existsSync } from "node:fs";
import { join } from "node:path";
import type { QueueBacklog } from "@conversation-export/queue";
import { describe, expect, it } from "vitest";
import { EXIT } from "../explain/exit-code.ts";
import { marksOf, runbookOf } from "./marks.ts";
import { renderStatus, statusFields } from "./render-status.ts";
import { type Asked, exitCodeOfStatus, type Status } from "./status.ts";

const AT = new Date("2026-11-21T12:00:00Z");
const ago = (seconds: number): number => AT.getTime() - seconds * 1000;
const answered = <T>(value: T): Asked<T> => ({ value, reason: null });
const away = { value: null, reason: "Kafka does not answer at k:9: check it", exitCode: EXIT.away } as const;

const QUIET: QueueBacklog = {
  name: "windows",
  waiting: 0,
  active: 0,
  delayed: 1,
  parts: 0,
  failed: 4,
  failedSince: 0,
  oldestWaitingSince: null,
  nextRunAt: AT.getTime() + 60_000,
};
const FINE: Status = {
  at: AT,
  lag: answered([{ topic: "messages", lag: 7, lost: 0 }]),
  deadLetters: answered([{ topic: "messages", kept: 3, lastHour: 0, notReplayed: 1 }]),
  brokers: answered({ brokers: 3, members: 2 }),
  watermarks: answered({ messages: 2 }),
  windows: answered({ open: 10, closed: 0, compacted: 70, backfilled: 0 }),
  erasures: answered({ count: 0, awaitingApproval: 0, overdue: 0, oldestReceivedAt: null }),
  tables: answered({ clickhouse: "26.7.1", applied: 20, pending: [], changed: [], later: [] }),
  clients: answered([]),
  queues: answered([QUIET]),
  held: answered([]),
  processes: answered({ redis: "8.0.1", workers: 1 }),
};

const alertsOf = (change: Partial<Status>): string[] =>
  marksOf({ ...FINE, ...change }).map(({ alert }) => alert);

it("shows on one screen that all is fine", () => {
  expect(renderStatus(FINE)).toBe(`2026-11-21T12:00:00Z  no alert would fire

TOPIC     LAG  WATERMARK  DEAD LETTERS  LAST HOUR  NOT REPLAYED
messages  7    2 s        3             0          1

QUEUE    WAITING  OLDEST  ACTIVE  PARTS  DELAYED  FAILED  LAST HOUR  SCHEDULE
windows  0        -       0       0      1        4       0          at 2026-11-21T12:01:00Z

windows     10 lines open, 0 to be compacted
erasures    0 open; 0 await approval, 0 overdue
processes   2 ingest in the group; 1 jobs connected
Redis       8.0.1
ClickHouse  26.7.1
migrations  20 applied
Kafka       3 brokers`);
  expect(exitCodeOfStatus(FINE)).toBe(EXIT.done);
});

it("names what an alert fires on and the page about it, and does not fail for it", () => {
  const bad = {
    ...FINE,
    watermarks: answered({ messages: 412 }),
    erasures: answered({ count: 2, awaitingApproval: 1, overdue: 0, oldestReceivedAt: ago(7_200) }),
  };
  const shown = renderStatus(bad);
  expect(shown).toContain("  2 would alert\n");
  expect(shown).toContain("messages  7    7 min ");
  expect(shown).toContain("erasures    2 open, the oldest for 2.0 h; 1 await approval, 0 overdue");
  expect(shown).toContain(`
!  WatermarkOld           watermarks: that of messages is 412 s old  docs/runbooks/WatermarkOld.md
!  ErasureAwaitsApproval  erasures: 1 wait for an operator           docs/runbooks/ErasureAwaitsApproval.md`);
  expect(exitCodeOfStatus(bad)).toBe(EXIT.done);
});

it("names clients that are not registered, which no alert is about", () => {
  const clients = answered([{ clientId: "Demo-Client", records: 7 }]);
  expect(renderStatus({ ...FINE, clients })).toContain("no alert would fire");
  expect(renderStatus({ ...FINE, clients })).toContain(
    'clients     1 not registered, with records: "Demo-Client" (7)',
  );
  expect(statusFields({ ...FINE, clients })).toMatchObject({
    unregistered_clients: [{ client_id: "Demo-Client", records: 7 }],
  });
});

it("shows the other parts when one could not be asked", () => {
  const partly = { ...FINE, lag: away, deadLetters: away, brokers: away };
  const shown = renderStatus(partly);
  expect(shown).toContain("1 would alert, 3 parts could not be asked");
  expect(shown).toContain(
    "!  IngestLagUnknown  lag: Kafka does not answer this command  docs/runbooks/IngestLagUnknown.md",
  );
  expect(shown).toContain("messages  ?    2 s        ?             ?          ?");
  expect(shown).toContain("? lag, dead letters, brokers: Kafka does not answer at k:9: check it");
  expect(shown).toContain("ClickHouse  26.7.1");
  expect(exitCodeOfStatus(partly)).toBe(EXIT.away);
  expect(statusFields(partly)).toMatchObject({
    lag: null,
    dead_letters: null,
    watermark_age_seconds: { messages: 2 },
    failed: [{ parts: ["lag", "dead letters", "brokers"], reason: away.reason }],
  });
});

it("marks a Redis that answers and takes no writes as its alert does", () => {
  const reason = "Redis refuses writes at r:6379 (OOM command not allowed): raise maxmemory";
  const refused = { value: null, reason, exitCode: EXIT.failed } as const;
  expect(marksOf({ ...FINE, processes: refused })).toEqual([
    { part: "processes", alert: "RedisAway", found: "Redis refuses writes" },
  ]);
});

it("tells a refusal from a server that is away by its exit code", () => {
  const refused = { value: null, reason: "ClickHouse refuses the user x", exitCode: EXIT.failed } as const;
  expect(exitCodeOfStatus({ ...FINE, windows: refused })).toBe(EXIT.failed);
  expect(renderStatus({ ...FINE, windows: refused })).toContain(
    "nothing alerts in what was asked, 1 part could",
  );
  expect(exitCodeOfStatus({ ...FINE, windows: refused, lag: away })).toBe(EXIT.away);
});

describe("marks", () => {
  const queue = (more: Partial<QueueBacklog>) => ({ queues: answered([{ ...QUIET, ...more }]) });
  const lag = (more: object) => ({
    lag: answered([{ topic: "messages", lag: 7, lost: 0, ...more }]),
  });
  const states = (more: object) => ({
    windows: answered({ open: 10, closed: 0, compacted: 0, backfilled: 0, ...more }),
  });
  const requests = (more: object) => ({
    erasures: answered({ count: 1, awaitingApproval: 0, overdue: 0, oldestReceivedAt: ago(60), ...more }),
  });

  it.each([
    ["a lag of many messages", lag({ lag: 10_001 }), ["IngestLag"]],
    ["a lag that is not larger", lag({ lag: 10_000 }), []],
    ["messages that were deleted unread", lag({ lost: 5 }), ["BusRecordsLost"]],
    ["an old watermark", { watermarks: answered({ messages: 301 }) }, ["WatermarkOld"]],
    ["no watermark", { watermarks: answered({ messages: null }) }, ["WatermarkOld"]],
    ["a watermark that is not older", { watermarks: answered({ messages: 300 }) }, []],
    [
      "a dead letter",
      { deadLetters: answered([{ topic: "messages", kept: 1, lastHour: 1, notReplayed: null }]) },
      ["DeadLetters"],
    ],
    ["many open windows", states({ open: 21 }), ["UploadWindowsOverdue"]],
    ["many windows to compact", states({ closed: 31 }), ["UploadWindowsOverdue"]],
    ["usual windows", states({ open: 20, closed: 30 }), []],
    ["an open request", requests({}), []],
    ["an old request", requests({ oldestReceivedAt: ago(86_401) }), ["ErasureSlow"]],
    ["an overdue request", requests({ overdue: 1 }), ["ErasureOverdue"]],
    ["a request that waits", requests({ awaitingApproval: 1 }), ["ErasureAwaitsApproval"]],
    ["a job that failed", queue({ failedSince: 1 }), ["JobFailed"]],
    ["a job that waits too long", queue({ oldestWaitingSince: ago(1_801) }), ["JobQueueOld"]],
    ["a job that may wait", queue({ name: "backfill", oldestWaitingSince: ago(1_801) }), []],
    ["a late schedule", queue({ nextRunAt: ago(1_801) }), ["ScheduleStalled"]],
    [
      "a held schedule",
      { held: answered([{ name: "retention" as const, job: "j", reason: "r", until: AT }]) },
      ["ScheduleHeld"],
    ],
    [
      "no process",
      {
        brokers: answered({ brokers: 3, members: 0 }),
        processes: answered({ redis: "8", workers: 0 }),
      },
      ["ComponentDown", "ComponentDown"],
    ],
    ["processes that Redis does not list", { processes: answered({ redis: "8", workers: null }) }, []],
    ["Redis away", { queues: away, held: away, processes: away }, ["RedisAway"]],
    ["Kafka away", { lag: away, deadLetters: away, brokers: away }, ["IngestLagUnknown"]],
    ["ClickHouse away", { watermarks: away, windows: away, tables: away }, ["IngestInsertsFail"]],
  ] satisfies [string, Partial<Status>, string[]][])("%s", (_, change, alerts) => {
    expect(alertsOf(change)).toEqual(alerts);
    for (const alert of alerts)
      expect(existsSync(join(import.meta.dirname, "../../../..", runbookOf(alert))), alert).toBe(true);
  });
});
