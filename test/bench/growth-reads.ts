import type { Streamed } from "@conversation-export/warehouse";
import { DAY_0 } from "../warehouse/records.ts";
import { startWarehouse, type Warehouse } from "../warehouse/warehouse.ts";
import { createdOf, type Dimension, dimensionsOf, fillShape, type Shape } from "./growth-shapes.ts";
import { median, plainResult, type Result } from "./report.ts";
import { type Cost, createMeter } from "./server-cost.ts";

const CLIENT = "client-0";
const ROUNDS = 9;
const SMALL_PAGE = 100;
const PAGE = 5_000;

const noteDates = async ({ sql }: Warehouse): Promise<void> => {
  await sql(`INSERT INTO watermarks (list, version, instant)
    SELECT 'changes with dates known', toUnixTimestamp64Micro(now64(6)), now64(6)`);
};

const drain = async (page: Promise<Streamed<{ readonly rows: number }>>): Promise<number> => {
  const { records, end } = await page;
  for await (const _ of records);
  return end()?.rows ?? 0;
};

type Read = {
  readonly name: string;
  /** Finds as many records whatever the number of clients. */
  readonly small: boolean;
  readonly run: (warehouse: Warehouse, shape: Shape) => Promise<number>;
};

const middleOf = (shape: Shape): number => createdOf(shape, Math.floor(shape.records / 2));

const pages = (name: string, pageSize: number): Read[] => {
  const small = pageSize === SMALL_PAGE;
  const query = (shape: Shape) =>
    ({ clientId: CLIENT, since: middleOf(shape), to: DAY_0, pageSize, wholeTies: false }) as const;
  return [
    {
      name: `${name} by creation`,
      small,
      run: ({ reader }, shape) => drain(reader.conversationsByCreation(query(shape))),
    },
    {
      name: `${name} by update`,
      small,
      run: ({ reader }, shape) => drain(reader.conversationsByUpdate(query(shape))),
    },
    {
      name: `${name} of changes`,
      small,
      run: ({ reader }, shape) =>
        drain(
          reader.changes({
            clientId: CLIENT,
            kind: "conversation",
            after: { date: middleOf(shape), id: "" },
            stableUpTo: DAY_0,
            pageSize,
          }),
        ),
    },
  ];
};

const READS: readonly Read[] = [
  ...pages(`${SMALL_PAGE}`, SMALL_PAGE),
  ...pages(`${PAGE}`, PAGE),
  {
    name: "messages of a conversation",
    small: true,
    run: async ({ reader, sql }, shape) => {
      const n = Math.floor(shape.records / 2 / shape.clients) * shape.clients;
      const id = await sql(`SELECT lower(hex(cityHash64(toUInt64(${n}), 1)))`);
      const query = { since: 0, to: DAY_0, pageSize: SMALL_PAGE, wholeTies: false } as const;
      return drain(reader.messagesByCreation({ clientId: CLIENT, conversationId: id, ...query }));
    },
  },
  {
    name: `${SMALL_PAGE / 2} end users`,
    small: true,
    run: ({ reader }) => drain(reader.endUsers({ clientId: CLIENT, from: "8", limit: SMALL_PAGE / 2 })),
  },
];

/** `ms`: processor time. */
export type GrowthLine = {
  readonly read: string;
  readonly by: Dimension["name"];
  readonly sizes: readonly number[];
  readonly ms: readonly number[];
};

/** 0: flat, 1: proportional. */
const exponentOf = ({ sizes, ms }: GrowthLine): number => {
  const ratio = (values: readonly number[]): number =>
    (values.at(-1) ?? Number.NaN) / (values[0] ?? Number.NaN);
  return Math.log(ratio(ms)) / Math.log(ratio(sizes));
};

const measure = async (
  warehouse: Warehouse,
  shape: Shape,
  read: Read,
): Promise<{ readonly cost: Cost; readonly found: number }> => {
  const meter = await createMeter(warehouse.stack.clickhouse.url("migrator"));
  const costs: Cost[] = [];
  let found = 0;
  for (let round = 0; round <= ROUNDS; round += 1) {
    const cost = await meter(async () => {
      found = await read.run(warehouse, shape);
    });
    if (round > 0) costs.push(cost);
  }
  const middle = (of: (cost: Cost) => number): number => median(costs.map(of));
  return {
    cost: {
      ms: middle(({ ms }) => ms),
      rows: middle(({ rows }) => rows),
      bytes: middle(({ bytes }) => bytes),
      granules: middle(({ granules }) => granules),
    },
    found,
  };
};

export const measureGrowth = async (records: number, log: (line: string) => void): Promise<GrowthLine[]> => {
  const lines = new Map<string, GrowthLine>();
  for (const { name: by, sizes, shape: shapeOf } of dimensionsOf(records)) {
    for (const size of sizes) {
      const shape = shapeOf(size);
      const warehouse = await startWarehouse();
      try {
        await fillShape(warehouse.sql, shape);
        log(
          `${shape.records} records of each kind, ${shape.clients} clients, ${shape.parts ?? "merged"} parts are stored`,
        );
        for (const read of READS.filter(({ small }) => small || by !== "clients")) {
          await noteDates(warehouse);
          const { cost, found } = await measure(warehouse, shape, read);
          const key = `${read.name} ${by}`;
          const before = lines.get(key) ?? { read: read.name, by, sizes, ms: [] };
          lines.set(key, { ...before, ms: [...before.ms, cost.ms] });
          log(
            `${by} ${size}, ${read.name}: ${cost.ms.toFixed(1)} ms, ${cost.rows} rows in ${cost.granules} granules, ${found} found`,
          );
        }
      } finally {
        await warehouse.stop();
      }
    }
  }
  return [...lines.values()];
};

export const growthResult = (line: GrowthLine): Result => {
  const [smallest = Number.NaN, largest = Number.NaN] = [line.ms[0], line.ms.at(-1)];
  const name = `growth_by_${line.by}_of_${line.read.replaceAll(/[ ,]+/g, "_")}`;
  return plainResult(name, "ms", largest, smallest, { exponent: exponentOf(line) });
};
