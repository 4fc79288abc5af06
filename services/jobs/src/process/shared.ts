import type { Exclusive, Redis, RunnableJob } from "@conversation-export/queue";
import type { Logger, Metrics, Part } from "@conversation-export/runtime";
import type { SuppressionGate } from "@conversation-export/suppression";
import type { Coordination, RunUpload, Session, StableReader } from "@conversation-export/warehouse";
import type { Config } from "../config.ts";
import type { Bus } from "./bus.ts";
import type { RunHolders } from "./run-holders.ts";

export type Shared = {
  readonly config: Config;
  readonly session: Session;
  readonly coordination: Coordination;
  readonly redis: Redis;
  readonly bus: Bus;
  readonly gate: SuppressionGate;
  readonly runUpload: RunUpload;
  readonly stable: StableReader;
  readonly exclusive: Pick<Exclusive, "run">;
  readonly runHolders: RunHolders;
  readonly metrics: Metrics;
  readonly log: Logger;
};

export type AssembledJob = {
  readonly job: RunnableJob;
  /** Started before the workers and stopped after them. */
  readonly parts?: readonly Part[];
  /** Called at the start and every few minutes. */
  readonly sweep?: () => Promise<void>;
};
