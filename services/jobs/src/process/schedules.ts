import {
  compactJob,
  erasureJob,
  reconcileJob,
  retentionJob,
  type Schedule,
  schedule,
  windowsJob,
} from "@conversation-export/queue";
import type { Config } from "../config.ts";

export const schedulesOf = (config: Pick<Config, "everyMs">): readonly Schedule[] => {
  const { everyMs } = config;
  return [
    schedule(erasureJob, { clientId: null, requestId: null }, everyMs.erasure),
    schedule(windowsJob, { since: null }, everyMs.windows),
    schedule(compactJob, { range: null, force: false, dryRun: false }, everyMs.compact),
    schedule(retentionJob, { clientId: null, dryRun: false }, everyMs.retention),
    schedule(reconcileJob, { from: null, to: null, clientId: null }, everyMs.reconcile),
  ];
};
