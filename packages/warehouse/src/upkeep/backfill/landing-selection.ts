import type { Micros } from "@conversation-export/domain";
import { micros } from "../../session/micros-sql.ts";

/** `from` inclusive, `to` exclusive. */
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
  /** By the attribute `time`; null: any. */
  readonly exported: { readonly from: Micros; readonly to: Micros } | null;
};

const TIME = `if(arrayExists(h -> h.1 = 'ce_specversion', headers),
  arrayFirst(h -> h.1 = 'ce_time', headers).2, JSONExtractString(payload, 'time'))`;
// ClickHouse's parser accepts neither a lower-case z nor a comma before the fraction.
const EXPORTED = `toUnixTimestamp64Micro(
  parseDateTime64BestEffortOrNull(upper(replaceOne(${TIME}, ',', '.')), 6, 'UTC'))`;

/** For tables of records; not for `bus`. */
export function storedCondition({ clientId, range, exported }: LandingSelection): {
  readonly sql: string;
  readonly parameters: Readonly<Record<string, unknown>>;
} {
  const conditions: string[] = [];
  const parameters: Record<string, unknown> = {};
  if (clientId !== null) {
    conditions.push("client_id = {client:String}");
    parameters["client"] = clientId;
  }
  if (exported !== null) {
    conditions.push(`exported_at >= ${micros("exported_from")} AND exported_at < ${micros("exported_to")}`);
    Object.assign(parameters, { exported_from: exported.from, exported_to: exported.to });
  } else if (range.by === "offsets") {
    conditions.push("bitShiftRight(toUInt64(version), 48) = {partition:UInt16}");
    const offset = `bitAnd(toUInt64(version), ${2 ** 48 - 1})`;
    conditions.push(`${offset} >= {range_from:UInt64} AND ${offset} < {range_to:UInt64}`);
    const { partition, from, to } = range;
    Object.assign(parameters, { partition, range_from: from, range_to: to });
  } else {
    conditions.push(`uploaded_at >= ${micros("range_from")} AND uploaded_at < ${micros("range_to")}`);
    Object.assign(parameters, { range_from: range.from, range_to: range.to });
  }
  return { sql: conditions.join(" AND "), parameters };
}

export function landingCondition({ clientId, range, exported }: LandingSelection): {
  readonly sql: string;
  readonly parameters: Readonly<Record<string, unknown>>;
} {
  const conditions: string[] = [];
  const parameters: Record<string, unknown> = { range_from: range.from, range_to: range.to };
  if (range.by === "offsets") {
    conditions.push("topic = {topic:String} AND partition = {partition:UInt16}");
    conditions.push("offset >= {range_from:UInt64} AND offset < {range_to:UInt64}");
    Object.assign(parameters, { topic: range.topic, partition: range.partition });
  } else {
    const date = range.by === "upload" ? "uploaded_at" : "bus_time";
    conditions.push(`${date} >= ${micros("range_from")} AND ${date} < ${micros("range_to")}`);
  }
  if (clientId !== null) {
    conditions.push("client_id = {client:String}");
    parameters["client"] = clientId;
  }
  if (exported !== null) {
    // Events with an unparseable time are included; they are only compared.
    conditions.push(
      `ifNull(${EXPORTED} >= {exported_from:Int64} AND ${EXPORTED} < {exported_to:Int64}, true)`,
    );
    Object.assign(parameters, { exported_from: exported.from, exported_to: exported.to });
  }
  return { sql: conditions.join(" AND "), parameters };
}
