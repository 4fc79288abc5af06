import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";
import {
  createBatch,
  createReader,
  createSession,
  createWriter,
  migrate,
  type Page,
  type PageQuery,
  type WarehouseError,
} from "@conversation-export/warehouse";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { until } from "../system/until.ts";
import { errorOf } from "../warehouse/error-of.ts";
import { conversation, DAY, DAY_0, message } from "../warehouse/records.ts";
import { readPage, walk } from "../warehouse/walk.ts";
import { startWarehouse, type Warehouse } from "../warehouse/warehouse.ts";
import { createSessions } from "../system/warehouse-sessions.ts";
import { noteDates } from "../system/record-dates.ts";
import { ticketNow } from "../warehouse/upload-now.ts";

let warehouse: Warehouse;
beforeAll(async () => {
  warehouse = await startWarehouse({ testRights: { otherDatabases: true } });
});
afterAll(() => warehouse?.stop());

const created = DAY_0;

function query(clientId: string, pageSize: number): PageQuery {
  return { clientId, since: DAY_0, to: DAY_0 + 7 * DAY, pageSize, wholeTies: false };
}

async function running(): Promise<number> {
  return Number(await warehouse.sql("SELECT count() FROM system.processes WHERE user = 'reader'"));
}

async function areKilled(): Promise<boolean> {
  const going = "SELECT count() FROM system.processes WHERE user = 'reader' AND NOT is_cancelled";
  return Number(await warehouse.sql(going)) === 0;
}

describe("a page that is on its way", () => {
  // 60 MB, more than sockets and buffers hold: the query runs until someone reads.
  beforeAll(async () => {
    await warehouse.sql(`INSERT INTO messages (client_id, date_created, message_id, version, record)
      SELECT 'big', fromUnixTimestamp64Micro(${created} + number, 'UTC'), toString(number), 1, concat('{"_id":"', toString(number), '","body":"', repeat('x', 6000), '"}')
      FROM numbers(10000)`);
    await warehouse.sql(`INSERT INTO conversations (client_id, date_created, conversation_id, version, date_updated, head, tail)
      SELECT client_id, date_created, message_id, version, date_created, concat('{"head":"', repeat('x', 6000), '","handoffs":'), '}' FROM messages WHERE client_id = 'big'`);
    await warehouse.sql(`INSERT INTO conversation_updates (client_id, date_updated, conversation_id, version, date_created)
      SELECT client_id, date_created, conversation_id, version, date_created FROM conversations WHERE client_id = 'big'`);
    for (const table of ["conversations", "messages"] as const) await warehouse.sql(noteDates(table));
  });

  const windows = ["conversationsByCreation", "conversationsByUpdate", "messagesByCreation"] as const;

  async function begun(read: (typeof windows)[number]): Promise<Page> {
    const page = await warehouse.reader[read](query("big", 10_000));
    await until("only the page", 10_000, async () => (await running()) === 1);
    return page;
  }

  test.each(windows)("%s: a killed query breaks the records and never ends them", async (read) => {
    const page = await begun(read);
    const killing = warehouse.sql("KILL QUERY WHERE user = 'reader' ASYNC");
    await until("the kill has arrived", 10_000, areKilled);
    const error = await errorOf(readPage(page));
    await killing;
    expect(error).toMatchObject({ code: "warehouse_unavailable", retryable: true });
    expect(page.records.readableEnded).toBe(false);
    await until("no query", 10_000, async () => (await running()) === 0);
  });

  test.each(windows)("%s: destroying the records cancels the query", async (read) => {
    const page = await begun(read);
    page.records.destroy();
    await until("no query", 10_000, async () => (await running()) === 0);
    const cancelled = await warehouse.reader[read](query("big", 10_000));
    expect((await readPage(cancelled)).length).toBe(10_000);
  });

  test("a page is read whole by a slow reader, without holding it in memory", async () => {
    const page = await begun("messagesByCreation");
    let size = 0;
    let largest = 0;
    for await (const chunk of page.records) {
      size += (chunk as Buffer).length;
      largest = Math.max(largest, page.records.readableLength);
      if (size % 7 === 0) await new Promise((resolve) => setImmediate(resolve));
    }
    expect(size).toBeGreaterThan(60_000_000);
    expect(largest).toBeLessThan(2_000_000);
  });

  test.each(windows)("%s: a signal cancels the query before its first bytes", async (read) => {
    let error: unknown;
    // Retries when the first bytes came before the signal.
    for (let attempt = 0; attempt < 20 && error === undefined; attempt += 1) {
      const controller = new AbortController();
      const reading = warehouse.reader[read]({ ...query("big", 10_000), signal: controller.signal });
      let isAnswered = false;
      const answer = reading
        .then(
          ({ records }) => void records.on("error", () => undefined).destroy(),
          (reason: unknown) => reason,
        )
        .finally(() => {
          isAnswered = true;
        });
      await until("the query runs", 10_000, async () => isAnswered || (await running()) > 0, 5);
      controller.abort();
      error = await answer;
      await until("no query", 10_000, async () => (await running()) === 0);
    }
    expect(error).toMatchObject({ code: "warehouse_unavailable" });
  });

  test("an exception that ClickHouse puts into the running answer breaks the records", async () => {
    const url = (user: "migrator" | "reader") => `${warehouse.stack.clickhouse.url(user)}_broken`;
    await migrate({ url: url("migrator") });
    // It would keep its column in memory.
    await warehouse.sql("ALTER TABLE conversation_export_broken.messages DROP PROJECTION of_conversation");
    await warehouse.sql(
      `INSERT INTO conversation_export_broken.messages SELECT * FROM messages WHERE client_id = 'big'`,
    );
    await warehouse.sql(noteDates("messages", { database: "conversation_export_broken" }));
    await warehouse.sql("ALTER TABLE conversation_export_broken.messages RENAME COLUMN record TO stored");
    await warehouse.sql(
      "ALTER TABLE conversation_export_broken.messages ADD COLUMN record String ALIAS if(throwIf(message_id = '9000') = 1, '', stored)",
    );
    const sessions = createSessions();
    const session = sessions.open(url("reader"));
    const reader = createReader({ session, lookups: session });
    const open = reader.lines.messages(query("big", 10_000));
    const { bytes: lines } = await open(new AbortController().signal);
    let size = 0;
    lines.on("data", (chunk: Buffer) => {
      size += chunk.length;
      expect(chunk.toString("latin1")).not.toContain("exception");
    });
    const [error] = (await once(lines, "error")) as [WarehouseError];
    expect(error).toMatchObject({
      code: "warehouse_unavailable",
      causeName: "EXCEPTION_MIDWAY",
      retryable: true,
    });
    expect(size).toBeGreaterThan(1_000_000);
    expect(lines.readableEnded).toBe(false);
    await sessions.close();
  });

  test("a signal that comes too early or too late harms nothing", async () => {
    const signal = AbortSignal.abort();
    await errorOf(warehouse.reader.messagesByCreation({ ...query("big", 10), signal }));
    expect(await errorOf(warehouse.reader.endUsers({ clientId: "big", limit: 1, signal }))).toMatchObject({
      code: "warehouse_unavailable",
    });
    const controller = new AbortController();
    const page = await warehouse.reader.messagesByCreation({
      ...query("big", 10),
      signal: controller.signal,
    });
    const records = await readPage(page);
    controller.abort();
    expect(records).toHaveLength(10);
  });
});

describe("refused rows", () => {
  test("name the data as the cause, and a split finds them", async () => {
    await warehouse.sql("ALTER TABLE conversations ADD CONSTRAINT no_bad CHECK conversation_id != 'bad'");
    const batch = createBatch("conversation.exported", 1);
    for (const id of ["a", "b", "bad", "c", "d"]) {
      batch.add(conversation({ client: "refused", time: DAY_0 }, id, created, created));
    }
    batch.fillUpload(DAY_0);
    const bad: number[] = [];
    const write = async (from: number, to: number): Promise<void> => {
      try {
        for (const insert of batch.inserts(from, to)) await warehouse.writer.insert(insert, ticketNow());
      } catch (error) {
        expect(error).toMatchObject({
          code: "warehouse_refused_data",
          retryable: false,
          causeName: "VIOLATED_CONSTRAINT",
        });
        if (to - from === 1) {
          bad.push(from);
          return;
        }
        const middle = (from + to) >> 1;
        await write(from, middle);
        await write(middle, to);
      }
    };
    await write(0, 5);
    await warehouse.sql("ALTER TABLE conversations DROP CONSTRAINT no_bad");
    expect(bad).toEqual([2]);
    for (const read of [warehouse.reader.conversationsByCreation, warehouse.reader.conversationsByUpdate]) {
      const { records } = await walk(read, query("refused", 2));
      expect(records.map((text) => (JSON.parse(text) as { _id: string })._id)).toEqual(["a", "b", "c", "d"]);
    }
  });

  test("bytes that are no rows are the data's fault too", async () => {
    const { writer } = warehouse;
    const insert = {
      table: "messages",
      columns: ["client_id", "message_id"],
      rows: 1,
      body: Buffer.from([3, 97]),
    };
    expect(await errorOf(writer.insert(insert, ticketNow()))).toMatchObject({
      code: "warehouse_refused_data",
      retryable: false,
    });
  });

  test("a missing table or right is not the data's fault", async () => {
    const { writer } = warehouse;
    const insert = { table: "nowhere", columns: ["a"], rows: 1, body: Buffer.from([0]) };
    expect(await errorOf(writer.insert(insert, ticketNow()))).toMatchObject({
      code: "warehouse_unavailable",
      causeName: "NO_SUCH_COLUMN_IN_TABLE",
    });
    const reading = createWriter({ session: warehouse.session("reader") });
    const batch = createBatch("message.exported", 1);
    batch.add(message({ client: "right", time: DAY_0 }, "m", created, "c"));
    for (const one of batch.inserts(0, 1)) {
      expect(await errorOf(reading.insert(one, ticketNow()))).toMatchObject({
        code: "warehouse_unavailable",
        causeName: "ACCESS_DENIED",
      });
    }
  });
});

describe("a server that is away", () => {
  type Proxy = { readonly url: string; cut(how: "end" | "resetAndDestroy"): void; close(): void };

  async function startProxy(): Promise<Proxy> {
    const target = new URL(warehouse.stack.clickhouse.url("reader"));
    const { hostname, port } = target;
    const sockets: Socket[] = [];
    const server = createServer((socket) => {
      const upstream = connect(Number(port), hostname);
      socket.on("error", () => upstream.destroy());
      upstream.on("error", () => socket.destroy());
      socket.on("close", () => upstream.destroy());
      socket.pipe(upstream);
      upstream.pipe(socket);
      sockets.push(socket);
    }).listen(0, "127.0.0.1");
    await once(server, "listening");
    const address = server.address();
    target.port = String(typeof address === "object" && address !== null ? address.port : 0);
    return {
      url: target.href,
      cut(how) {
        for (const socket of sockets) socket[how]();
      },
      close: () => server.close(),
    };
  }

  test.each([
    "end",
    "resetAndDestroy",
  ] as const)("a connection that breaks midway (%s) breaks the records", async (how) => {
    const proxy = await startProxy();
    const session = createSession({ url: proxy.url, application: "test" });
    const reader = createReader({ session, lookups: session });
    const page = await reader.messagesByCreation(query("big", 10_000));
    proxy.cut(how);
    expect(await errorOf(readPage(page))).toMatchObject({ code: "warehouse_unavailable", retryable: true });
    await session.close();
    proxy.close();
  });

  test("a killed server breaks the records; afterwards everything fails as retryable, until it is back", async () => {
    const { reader, writer, stack } = warehouse;
    const page = await reader.messagesByCreation(query("big", 10_000));
    await stack.clickhouse.kill();
    expect(await errorOf(readPage(page))).toMatchObject({ code: "warehouse_unavailable", retryable: true });
    const batch = createBatch("message.exported", 1);
    batch.add(message({ client: "down", time: DAY_0 }, "m", created, "c"));
    batch.fillUpload(DAY_0);
    const insert = batch.inserts(0, 1).at(-1);
    if (insert === undefined) throw new Error("no insert");
    for (const failing of [
      reader.messagesByCreation(query("big", 10)),
      reader.conversationsByCreation(query("big", 10)),
      reader.conversationsByUpdate(query("big", 10)),
      reader.findKey("0".repeat(64)),
      reader.ping(),
      writer.insert(insert, ticketNow()),
    ].map((promise: Promise<unknown>) => errorOf(promise))) {
      expect(await failing).toMatchObject({ code: "warehouse_unavailable", retryable: true });
    }
    await stack.clickhouse.start();
    await writer.insert(insert, ticketNow());
    expect((await walk(reader.messagesByCreation, query("down", 10))).records).toHaveLength(1);
    expect((await walk(reader.messagesByCreation, query("big", 10_000))).records).toHaveLength(10_000);
  });
});
