import type { EventType } from "@conversation-export/domain";

/** Identifies a record, under any of its dates. */
export type RecordName = { readonly type: EventType; readonly clientId: string; readonly id: string };

/** SQL for the records that a run has noted in `job_keys`. Parameters: run, type. */
export const NOTED_RECORDS =
  "SELECT client_id, id FROM job_keys WHERE run_id = {run:String} AND kind = {type:String}";
