import type { ExportRecord, RightRow, WriteTicket } from "@conversation-export/domain";
import type { Session } from "../../session/session.ts";
import { insertHalves } from "../../write/insert-halves.ts";
import { rightInserts } from "../../write/right-inserts.ts";
import { createWriter } from "../../write/writer.ts";
import { recordKey } from "./record-reader.ts";

export type RightRows = {
  /** Repeatable. Returns records rejected for their data. @throws WarehouseError */
  insert(
    rows: readonly RightRow[],
    options: { readonly ticket: WriteTicket; readonly signal: AbortSignal },
  ): Promise<ReadonlyMap<string, ExportRecord>>;
};

export const createRightRows = (deps: { readonly session: Session }): RightRows => {
  const writer = createWriter(deps);
  return {
    insert: async (rows, { ticket, signal }) => {
      const refused = new Map<string, ExportRecord>();
      for (const batch of rightInserts(rows, ticket.stamp)) {
        const found = await insertHalves(batch, batch.records.length, (one) =>
          writer.insert(one, ticket, signal),
        );
        for (const index of found) {
          const record = batch.records[index];
          if (record !== undefined) refused.set(recordKey(record.clientId, record.id), record);
        }
      }
      return refused;
    },
  };
};
