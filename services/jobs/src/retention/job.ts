import { runJob } from "@conversation-export/queue";
import { createAuditStore, createClientStore, createRetentionStore } from "@conversation-export/warehouse";
import { noted } from "../process/noted.ts";
import type { AssembledJob, Shared } from "../process/shared.ts";
import { createRetention } from "./retention.ts";

export const createRetentionJob = ({ session, runUpload, metrics }: Shared): AssembledJob => {
  const expired = metrics.counter(
    "conversation_export_retention_rows_total",
    "Stored rows erased for their age",
    ["table"],
  );
  const retention = createRetention({
    clients: createClientStore({ session, now: Date.now }),
    store: createRetentionStore({ session, runUpload }),
    now: Date.now,
    onErased: (table, rows) => expired.inc({ table }, rows),
  });
  const audited = noted(retention, createAuditStore({ session }), ({ dryRun }) => !dryRun);
  return { job: runJob(audited, { globalConcurrency: 1 }) };
};
