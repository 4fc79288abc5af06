import type { ExportRecord } from "@conversation-export/domain";
import type { ClickhouseUser, StackOptions } from "@conversation-export/local-stack";
import {
  createBatch,
  createReader,
  createWriter,
  migrate,
  type Reader,
  type Session,
  type Topology,
  type Writer,
} from "@conversation-export/warehouse";
import { rememberShards, SHARDS, topologyOf } from "../system/shards.ts";
import { startTestStack, type TestStack } from "../system/test-stack.ts";
import { runSql } from "../system/warehouse-sql.ts";
import { DAY_0 } from "./records.ts";
import { createSessions } from "../system/warehouse-sessions.ts";
import { ticketNow } from "./upload-now.ts";

export type Warehouse = {
  readonly stack: TestStack;
  readonly topology: Topology;
  readonly writer: Writer;
  readonly reader: Reader;
  session(user: ClickhouseUser): Session;
  sql(statement: string, user?: ClickhouseUser): Promise<string>;
  /** One batch; `statements`: only the first few inserts. */
  write(records: readonly ExportRecord[], uploadedAt?: number, statements?: number): Promise<void>;
  stop(): Promise<void>;
};

/** Parts stay unmerged. */
export async function startWarehouse(options: Pick<StackOptions, "testRights"> = {}): Promise<Warehouse> {
  const stack = await startTestStack({ ...options, servers: ["clickhouse"], shards: SHARDS });
  const topology = topologyOf(stack);
  await migrate({ url: stack.clickhouse.url("migrator"), topology });
  const sessions = createSessions();
  const session = (user: ClickhouseUser): Session => sessions.open(stack.clickhouse.url(user), topology);
  const writer = createWriter({ session: session("writer") });
  const reader = createReader({ session: session("reader"), lookups: session("lookup") });

  rememberShards(stack);
  const sql = async (statement: string, user: ClickhouseUser = "migrator"): Promise<string> =>
    (await runSql(stack.clickhouse.url(user), statement)).trim();

  await sql("SYSTEM STOP MERGES");
  return {
    stack,
    topology,
    writer,
    reader,
    session,
    sql,
    async write(records, uploadedAt = DAY_0, statements = Infinity) {
      const [first] = records;
      if (first === undefined) return;
      const batch = createBatch(first.type, 1024);
      for (const record of records) batch.add(record);
      batch.fillUpload(uploadedAt);
      for (const insert of batch.inserts(0, batch.records()).slice(0, statements))
        await writer.insert(insert, ticketNow());
    },
    async stop() {
      await sessions.close();
      await stack.stop();
    },
  };
}
