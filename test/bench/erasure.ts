import { randomUUID } from "node:crypto";
import {
  createErasureStore,
  createReader,
  createSession,
  type PageQuery,
} from "@conversation-export/warehouse";
import type { System } from "../system/system.ts";
import { uploadNow } from "../warehouse/upload-now.ts";
import { readPage } from "../warehouse/walk.ts";
import type { Figure } from "./capacity.ts";
import { median } from "./report.ts";
import { type Cost, createMeter } from "./server-cost.ts";
import { runSql } from "./warehouse-http.ts";
import { mergesIdle } from "./window-data.ts";

const PEOPLE = 100;
const MESSAGES = 5;
const CLIENT = "bench";
const START = 1_780_272_000_000_000;
const SECOND = 1_000_000;
/** Shares of the largest size. */
const SHARES = [1 / 16, 1 / 4, 1] as const;
const ROUNDS = 5;

/** Adds conversations of one chatter each, with messages, to all tables that an erasure reads. */
const fill = async (url: string, from: number, to: number): Promise<void> => {
  const numbers = `numbers(${from}, ${to - from})`;
  const created = `fromUnixTimestamp64Micro(${START} + n * ${SECOND}, 'UTC')`;
  const conversation = `number AS n, concat('c', lower(hex(cityHash64(n)))) AS cid, concat('person', toString(n)) AS who`;
  const message = `intDiv(number, ${MESSAGES}) AS n, concat('c', lower(hex(cityHash64(n)))) AS cid,
    concat('m', lower(hex(cityHash64(number, 1)))) AS mid, concat('person', toString(n)) AS who`;
  const messages = `numbers(${from * MESSAGES}, ${(to - from) * MESSAGES})`;
  const head = `concat('{"_id":"', cid, '","inquiry_summary":"', repeat(lower(hex(cityHash64(n, 9))), 50), '","handoffs":')`;
  const tail = `concat(',"chatter_id":"', who, '","end_user_id":"u', who, '"}')`;
  const insert = (into: string, select: string) => runSql(url, `INSERT INTO ${into} ${select}`);
  await insert(
    "conversations (client_id, date_created, conversation_id, version, date_updated, chatter_id, end_user_id, head, tail)",
    `SELECT '${CLIENT}', ${created}, cid, 1, ${created}, who, concat('u', who), ${head}, ${tail} FROM (SELECT ${conversation} FROM ${numbers})`,
  );
  await insert(
    "conversation_updates (client_id, date_updated, conversation_id, version, date_created, chatter_id, end_user_id, head, tail)",
    `SELECT '${CLIENT}', ${created}, cid, 1, ${created}, who, concat('u', who), ${head}, ${tail} FROM (SELECT ${conversation} FROM ${numbers})`,
  );
  await insert(
    "messages (client_id, date_created, message_id, version, conversation_id, chatter_id, sender, recipient, record)",
    `SELECT '${CLIENT}', ${created}, mid, 1, cid, who, who, 'bot', concat('{"_id":"', mid, '","body":"', repeat(lower(hex(cityHash64(mid))), 15), '"}')
      FROM (SELECT ${message} FROM ${messages})`,
  );
  for (const [kind, letter, id, source] of [
    ["conversation", "c", "cid", `SELECT ${conversation} FROM ${numbers}`],
    ["message", "m", "mid", `SELECT ${message} FROM ${messages}`],
  ] as const) {
    await insert(
      "record_dates (client_id, record, date_created)",
      `SELECT '${CLIENT}', concat('${CLIENT.length}/${CLIENT}/${letter}/', ${id}), ${created} FROM (${source})`,
    );
    await insert(
      "changes (client_id, kind, stored_at, id, date_created)",
      `SELECT '${CLIENT}', '${kind}', ${created}, ${id}, ${created} FROM (${source})`,
    );
    await insert(
      "landing (topic, offset, type, client_id, record_id, conversation_id, date_created, subjects, uploaded_at, expires_on)",
      `SELECT '${kind}s', n, '${kind}.exported', '${CLIENT}', ${id}, cid, ${created}, [concat('chatter_id:', who)], ${created}, today() + 90 FROM (${source})`,
    );
  }
};

/**
 * What it costs to find 100 people among more and more records, and what a page of their client costs while
 * they are hidden. The largest size has `conversations` with five messages each.
 */
export const benchErasure = async (
  system: System,
  conversations: number,
  log: (line: string) => void,
): Promise<readonly Figure[]> => {
  const url = system.stack.clickhouse.url("migrator");
  const session = createSession({ url: system.stack.clickhouse.url("jobs"), application: "bench" });
  const reading = createSession({ url: system.stack.clickhouse.url("reader"), application: "bench" });
  const store = createErasureStore({ session, runUpload: uploadNow });
  const reader = createReader({ session: reading, lookups: reading });
  const figures: Figure[] = [];
  let filled = 0;
  try {
    for (const share of SHARES) {
      const size = Math.round(conversations * share);
      await fill(url, filled, size);
      filled = size;
      await mergesIdle(url);
      const records = size * (MESSAGES + 1);
      const meter = await createMeter(url);
      const note = (what: string, { ms, rows, bytes, granules }: Cost): void => {
        log(
          `${records} records: ${what} ${ms.toFixed(0)} ms of processor time, ${rows} rows in ${granules} granules, ${(bytes / 1e6).toFixed(0)} MB read`,
        );
        figures.push(
          { name: `erasure_${what}_ms_${records}`, value: ms, unit: "ms" },
          { name: `erasure_${what}_rows_${records}`, value: rows, unit: "rows" },
        );
      };
      const middle = async (work: () => Promise<unknown>): Promise<Cost> => {
        const costs: Cost[] = [];
        for (let round = 0; round < ROUNDS; round += 1) costs.push(await meter(work));
        const of = (key: keyof Cost) => median(costs.map((cost) => cost[key]));
        return { ms: of("ms"), rows: of("rows"), bytes: of("bytes"), granules: of("granules") };
      };
      const subjects = Array.from({ length: PEOPLE }, (_, at) => ({
        clientId: CLIENT,
        subject: `chatter_id:person${at * Math.floor(size / PEOPLE)}`,
        createdBefore: Date.UTC(2100) * 1_000,
        requestId: "bench",
      }));
      let run = "";
      const collect = await middle(async () => {
        run = randomUUID();
        await store.note(run, subjects);
        await store.collect(run);
      });
      note("collect", collect);
      const query: PageQuery = {
        clientId: CLIENT,
        since: START,
        to: START + size * SECOND,
        pageSize: 1_000,
        wholeTies: false,
      };
      const page = () => reader.conversationsByCreation(query).then(readPage);
      note("page", await middle(page));
      await store.hide(run);
      note("page_hiding", await middle(page));
      await runSql(url, "TRUNCATE TABLE hidden_records");
      await runSql(url, "TRUNCATE TABLE job_keys");
    }
  } finally {
    await Promise.all([session.close(), reading.close()]);
  }
  return figures;
};
