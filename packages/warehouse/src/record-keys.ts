import type { EventType, RecordTable } from "@conversation-export/domain";

/** What identifies a record in each table, and the date of its row's key. */
type KeyColumns = { readonly id: string; readonly date: string | null };

export const KEY_COLUMNS: Readonly<Record<RecordTable, KeyColumns>> = {
  conversations: { id: "conversation_id", date: "date_created" },
  conversation_updates: { id: "conversation_id", date: "date_updated" },
  handoffs: { id: "conversation_id", date: "conversation_date_created" },
  messages: { id: "message_id", date: "date_created" },
  end_users: { id: "end_user_id", date: null },
};

/** One record of the warehouse, whatever its dates. */
export type RecordName = { readonly type: EventType; readonly clientId: string; readonly id: string };

/** The records that a run has noted among the keys of jobs. Parameters: run, type. */
export const NOTED_RECORDS =
  "SELECT client_id, id FROM job_keys WHERE run_id = {run:String} AND kind = {type:String}";
