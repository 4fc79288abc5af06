import type { Exclusive, Redis, RunnableJob } from "@conversation-export/queue";
import type { Logger, Metrics, Part } from "@conversation-export/runtime";
import type { SuppressionGate } from "@conversation-export/suppression";
import type { Coordination, RunUpload, Session, StableReader } from "@conversation-export/warehouse";
import type { Config } from "../config.ts";
import type { Bus } from "./bus.ts";
import type { RunHolders } from "./run-holders.ts";

/** The parts of the process from which each job builds what it needs. */
export type Shared = {
  readonly config: Config;
  /** Statements of the user for jobs. */
  readonly session: Session;
  readonly coordination: Coordination;
  readonly redis: Redis;
  readonly bus: Bus;
  /** Every job that writes records asks it. */
  readonly gate: SuppressionGate;
  readonly runUpload: RunUpload;
  readonly stable: StableReader;
  /**
   * Locks over all processes: single rows of records are deleted, and the ledger of windows changed, under
   * one each.
   */
  readonly exclusive: Pick<Exclusive, "run">;
  readonly runHolders: RunHolders;
  readonly metrics: Metrics;
  readonly log: Logger;
};

/** What the folder of a job gives to the process. */
export type AssembledJob = {
  readonly job: RunnableJob;
  /** Started before the workers and stopped after them. */
  readonly parts?: readonly Part[];
  /** Removes what dead processes left in ClickHouse; called at the start and every few minutes. */
  readonly sweep?: () => Promise<void>;
};
