import type { HeldSchedule, QueueBacklog } from "@conversation-export/queue";
import type { OpenRequests, UnregisteredClient } from "@conversation-export/warehouse";
import type { WindowState } from "@conversation-export/domain";
import { EXIT, type ExitCode } from "../explain/exit-code.ts";

/** What a question was answered with, or why it was not. */
export type Asked<T> =
  | { readonly value: T; readonly reason: null }
  | { readonly value: null; readonly reason: string; readonly exitCode: ExitCode };

export type TopicLag = {
  readonly topic: string;
  /** Messages; null: unknown. */
  readonly lag: number | null;
  /** There is something that may not be read yet. */
  readonly filled: boolean;
  /** Messages that Kafka deleted before ingest read them. */
  readonly lost: number;
};

export type DeadLetterCount = {
  readonly topic: string;
  readonly kept: number;
  readonly lastHour: number;
  /** Kept ones that nobody has replayed; null: ClickHouse did not say. */
  readonly notReplayed: number | null;
};

export type Kafka = {
  readonly brokers: number;
  /** Processes of ingest that are in its consumer group. */
  readonly members: number;
};

export type Processes = {
  readonly redis: string | null;
  /** Processes that take jobs; null: Redis does not list its clients. */
  readonly workers: number | null;
};

export type Tables = {
  readonly clickhouse: string;
  readonly applied: number;
  /** Names of migrations. */
  readonly pending: readonly string[];
  readonly changed: readonly string[];
  readonly later: readonly string[];
};

/** Everything that `status` asks, each part for itself. */
export type Status = {
  readonly at: Date;
  /** Lag of ingest, from Kafka. */
  readonly lag: Asked<readonly TopicLag[]>;
  /** From Kafka, and ClickHouse for what was replayed. */
  readonly deadLetters: Asked<readonly DeadLetterCount[]>;
  readonly brokers: Asked<Kafka>;
  /** Age of the watermark of each topic in seconds, from ClickHouse; null: it has none. */
  readonly watermarks: Asked<Readonly<Record<string, number | null>>>;
  /** Lines of the ledger of upload windows, from ClickHouse. */
  readonly windows: Asked<Readonly<Record<WindowState, number>>>;
  readonly erasures: Asked<OpenRequests>;
  readonly tables: Asked<Tables>;
  /** Whose events came though they are not registered, from ClickHouse. */
  readonly clients: Asked<readonly UnregisteredClient[]>;
  /** From Redis. */
  readonly queues: Asked<readonly QueueBacklog[]>;
  readonly held: Asked<readonly HeldSchedule[]>;
  readonly processes: Asked<Processes>;
};

export type PartName = Exclude<keyof Status, "at">;

export const PARTS: readonly PartName[] = [
  "lag",
  "deadLetters",
  "brokers",
  "watermarks",
  "windows",
  "erasures",
  "tables",
  "clients",
  "queues",
  "held",
  "processes",
];

/** Parts that could not be asked, those with the same reason together. */
export const failuresOf = (
  status: Status,
): { readonly parts: readonly PartName[]; readonly reason: string; readonly exitCode: ExitCode }[] => {
  const failed = PARTS.flatMap((part) => {
    const asked = status[part];
    return asked.reason === null ? [] : [{ part, reason: asked.reason, exitCode: asked.exitCode }];
  });
  return [...Map.groupBy(failed, ({ reason }) => reason)].map(([reason, own]) => ({
    parts: own.map(({ part }) => part),
    reason,
    exitCode: own[0]?.exitCode ?? EXIT.failed,
  }));
};

/** The exit code of a look: a server that is away outweighs the rest. */
export const exitCodeOfStatus = (status: Status): ExitCode => {
  const codes = failuresOf(status).map(({ exitCode }) => exitCode);
  return codes.includes(EXIT.away) ? EXIT.away : (codes[0] ?? EXIT.done);
};
