import { MICROS_IN_DAY, MICROS_IN_SECOND } from "@conversation-export/domain";
import { DAY_0 } from "../warehouse/records.ts";
import { insertsOf, mergeAll } from "./growth-data.ts";

/** Partitions are months; one month keeps all parts in one partition. */
const MONTH_DAYS = 28;
const YEAR_DAYS = 360;

export type Shape = {
  readonly records: number;
  readonly clients: number;
  readonly days: number;
  /** Null: as ClickHouse merges them. */
  readonly parts: number | null;
};

export type Dimension = {
  readonly name: "records" | "clients" | "parts";
  readonly sizes: readonly number[];
  readonly shape: (size: number) => Shape;
};

export const dimensionsOf = (records: number): readonly Dimension[] => {
  const few = Math.ceil(records / 16);
  return [
    {
      name: "records",
      sizes: [few, Math.ceil(records / 4), records],
      shape: (size) => ({ records: size, clients: 4, days: YEAR_DAYS, parts: null }),
    },
    {
      name: "clients",
      sizes: [1, 100, 10_000],
      shape: (size) => ({ records: Math.ceil(records / 4), clients: size, days: YEAR_DAYS, parts: null }),
    },
    {
      name: "parts",
      sizes: [1, 50, 500],
      shape: (size) => ({ records: few, clients: 4, days: MONTH_DAYS, parts: size }),
    },
  ];
};

/** In µs. */
export const createdOf = ({ records, days }: Shape, n: number): number =>
  DAY_0 - days * MICROS_IN_DAY + n * Math.floor((days * MICROS_IN_DAY) / records);

/** Merges are stopped, so that the parts stay. */
export const fillShape = async (
  sql: (statement: string) => Promise<unknown>,
  shape: Shape,
): Promise<void> => {
  const { records, clients, days, parts } = shape;
  const slices = parts ?? 1;
  await sql(slices > 1 ? "SYSTEM STOP MERGES" : "SYSTEM START MERGES");
  const span = days * MICROS_IN_DAY;
  // `n` times the span exceeds 64 bits.
  const created = `${DAY_0 - span} + n * ${Math.floor(span / records)}`;
  for (let slice = 0; slice < slices; slice += 1) {
    const from = Math.floor((slice * records) / slices);
    const count = Math.floor(((slice + 1) * records) / slices) - from;
    const rows = {
      from: `SELECT number AS n FROM numbers(${from}, ${count})`,
      client: `concat('client-', toString(n % ${clients}))`,
      id: "lower(hex(cityHash64(n, 1)))",
      created,
      uploaded: `${created} + ${60 * MICROS_IN_SECOND}`,
    };
    for (const statement of insertsOf(rows)) await sql(statement);
  }
  if (slices > 1) return;
  await mergeAll(sql);
  await sql("SYSTEM STOP MERGES");
};
