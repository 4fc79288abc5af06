import type { HeldSchedule, QueueBacklog } from "@conversation-export/queue";
import type { OpenRequests, UnregisteredClient } from "@conversation-export/warehouse";
import type { WindowState } from "@conversation-export/domain";
import { EXIT, type ExitCode } from "../explain/exit-code.ts";

export type Asked<T> =
  | { readonly value: T; readonly reason: null }
  | { readonly value: null; readonly reason: string; readonly exitCode: ExitCode };

export type TopicLag = {
  readonly topic: string;
  /** Messages. */
  readonly lag: number;
  readonly lost: number;
};

export type DeadLetterCount = {
  readonly topic: string;
  readonly kept: number;
  readonly lastHour: number;
  /** null: unknown. */
  readonly notReplayed: number | null;
};

export type Kafka = {
  readonly brokers: number;
  readonly members: number;
};

export type Processes = {
  readonly redis: string | null;
  /** null: Redis lists no clients. */
  readonly workers: number | null;
};

export type Tables = {
  readonly clickhouse: string;
  readonly applied: number;
  readonly pending: readonly string[];
  readonly changed: readonly string[];
  readonly later: readonly string[];
};

/** Each part for itself. */
export type Status = {
  readonly at: Date;
  readonly lag: Asked<readonly TopicLag[]>;
  /** Replays: from ClickHouse. */
  readonly deadLetters: Asked<readonly DeadLetterCount[]>;
  readonly brokers: Asked<Kafka>;
  /** Seconds; null: none. */
  readonly watermarks: Asked<Readonly<Record<string, number | null>>>;
  /** Lines of the ledger. */
  readonly windows: Asked<Readonly<Record<WindowState, number>>>;
  readonly erasures: Asked<OpenRequests>;
  readonly tables: Asked<Tables>;
  readonly clients: Asked<readonly UnregisteredClient[]>;
  readonly queues: Asked<readonly QueueBacklog[]>;
  readonly held: Asked<readonly HeldSchedule[]>;
  readonly processes: Asked<Processes>;
};

export type PartName = Exclude<keyof Status, "at">;

export const PART_NAMES: Readonly<Record<PartName, string>> = {
  lag: "lag",
  deadLetters: "dead letters",
  brokers: "brokers",
  watermarks: "watermarks",
  windows: "windows",
  erasures: "erasures",
  tables: "tables",
  clients: "clients",
  queues: "queues",
  held: "held schedules",
  processes: "processes",
};

export const secondsSince = (at: Date, instant: number): number =>
  Math.max(0, Math.floor((at.getTime() - instant) / 1000));

/** Grouped by reason. */
export const failuresOf = (
  status: Status,
): { readonly parts: readonly PartName[]; readonly reason: string; readonly exitCode: ExitCode }[] => {
  const failed = (Object.keys(PART_NAMES) as PartName[]).flatMap((part) => {
    const asked = status[part];
    return asked.reason === null ? [] : [{ part, reason: asked.reason, exitCode: asked.exitCode }];
  });
  return [...Map.groupBy(failed, ({ reason }) => reason)].map(([reason, own]) => ({
    parts: own.map(({ part }) => part),
    reason,
    exitCode: own[0]?.exitCode ?? EXIT.failed,
  }));
};

/** An absent server outweighs the rest. */
export const exitCodeOfStatus = (status: Status): ExitCode => {
  const codes = failuresOf(status).map(({ exitCode }) => exitCode);
  return codes.includes(EXIT.away) ? EXIT.away : (codes[0] ?? EXIT.done);
};
