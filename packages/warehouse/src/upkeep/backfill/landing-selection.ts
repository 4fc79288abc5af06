import type { Micros } from "@conversation-export/domain";
import { micros } from "../../session/micros-sql.ts";

/** Selects events of the landing table. Ranges are from `from` inclusive to `to` exclusive. */
export type LandingSelection = {
  /** null: all clients. */
  readonly clientId: string | null;
  readonly range:
    | { readonly by: "upload" | "bus"; readonly from: Micros; readonly to: Micros }
    | {
        readonly by: "offsets";
        readonly topic: string;
        readonly partition: number;
        readonly from: number;
        readonly to: number;
      };
  /** Range of the export time in the events (attribute `time`); null: any. */
  readonly exported: { readonly from: Micros; readonly to: Micros } | null;
  /** Records whose hash modulo `of` is `index`. */
  readonly share: { readonly index: number; readonly of: number };
};

/** The attribute `time` of an event: a header in binary mode, a member of the payload otherwise. */
const TIME = `if(arrayExists(h -> h.1 = 'ce_specversion', headers),
  arrayFirst(h -> h.1 = 'ce_time', headers).2, JSONExtractString(payload, 'time'))`;
// Events may use a lower-case z and a comma before the fraction, which ClickHouse's parser does not accept.
const EXPORTED = `toUnixTimestamp64Micro(
  parseDateTime64BestEffortOrNull(upper(replaceOne(${TIME}, ',', '.')), 6, 'UTC'))`;

/** SQL condition of a selection; `column` is the SQL of the column of its range, as a number. */
export function landingCondition({ clientId, range, exported, share }: LandingSelection): {
  readonly sql: string;
  readonly parameters: Readonly<Record<string, unknown>>;
  readonly column: string;
} {
  const conditions: string[] = [];
  const parameters: Record<string, unknown> = { range_from: range.from, range_to: range.to };
  let column = "offset";
  if (range.by === "offsets") {
    conditions.push("topic = {topic:String} AND partition = {partition:UInt16}");
    conditions.push("offset >= {range_from:UInt64} AND offset < {range_to:UInt64}");
    Object.assign(parameters, { topic: range.topic, partition: range.partition });
  } else {
    const date = range.by === "upload" ? "uploaded_at" : "bus_time";
    column =
      range.by === "upload" ? `toUnixTimestamp64Micro(${date})` : `toUnixTimestamp64Milli(${date}) * 1000`;
    conditions.push(`${date} >= ${micros("range_from")} AND ${date} < ${micros("range_to")}`);
  }
  if (clientId !== null) {
    conditions.push("client_id = {client:String}");
    parameters["client"] = clientId;
  }
  if (share.of > 1) {
    conditions.push("cityHash64(client_id, record_id) % {share_of:UInt32} = {share_index:UInt32}");
    Object.assign(parameters, { share_of: share.of, share_index: share.index });
  }
  if (exported !== null) {
    // Events with an unparseable time are included; they are only compared.
    conditions.push(
      `ifNull(${EXPORTED} >= {exported_from:Int64} AND ${EXPORTED} < {exported_to:Int64}, true)`,
    );
    Object.assign(parameters, { exported_from: exported.from, exported_to: exported.to });
  }
  return { sql: conditions.join(" AND "), parameters, column };
}
