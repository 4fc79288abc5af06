import { createHash } from "node:crypto";
import { request } from "node:http";
import type { Readable } from "node:stream";
import { createGunzip, createZstdDecompress } from "node:zlib";
import { formatTimestampZ, RECORD_COLUMNS } from "@conversation-export/domain";
import { PARQUET_SETTINGS, typedColumns } from "@conversation-export/warehouse";
import autocannon from "autocannon";
import type { System } from "../system/system.ts";
import { peakMegabytes } from "../system/process-memory.ts";
import { jobsBeside } from "./jobs-beside.ts";
import { median, type Result } from "./report.ts";
import { interleaved } from "./rounds.ts";
import { openSql } from "./warehouse-http.ts";
import { fillWindow, mergesIdle, WINDOW_MICROS, WINDOW_START } from "./window-data.ts";

const WINDOW_END = WINDOW_START + WINDOW_MICROS;
const CONNECTIONS = 32;
const SMALL_PAGE = 100;
const SMALL_ROUNDS = 3;
const SMALL_SECONDS = 6;
const LARGE_PAGE = 10_000;
const MEGABYTE = 1_000_000;
/** Three windows, as customers have them, too wide to be reached. */
const WIDE_LIMITS = "1000000/1s,1000000/1m,1000000/1d";
/** As many reading slots as the quota of the reading user allows for minutes. */
const API_ENV = { LOG_LEVEL: "warn", MAX_PAGES_PER_CLIENT: "8", MAX_SHARED_PAGES_PER_CLIENT: "64" };

type Codings = "identity" | "gzip" | "zstd";
type Log = (line: string) => void;

const windowQuery = (place: number, pageSize: number): string => {
  const since = formatTimestampZ(WINDOW_START + Math.floor(WINDOW_MICROS * place));
  return `created_since=${since}&created_to=${formatTimestampZ(WINDOW_END)}&page_size=${pageSize}`;
};

/** Opens the body of an answer, still encoded. */
const open = (url: string, headers: Readonly<Record<string, string>>): Promise<Readable> =>
  new Promise((resolve, reject) => {
    const sent = request(url, { headers }, (response) => {
      if (response.statusCode === 200) resolve(response);
      else reject(new Error(`${response.statusCode} for ${url}`));
    });
    sent.on("error", reject);
    sent.end();
  });

/** Reads to the end. Returns the number of bytes and the last 500, to check how it ended. */
const drain = async (
  body: Readable,
  onBytes: (bytes: Buffer) => void = () => {},
): Promise<{ bytes: number; end: string }> => {
  let bytes = 0;
  let last: Buffer = Buffer.alloc(0);
  for await (const chunk of body as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    last = chunk;
    onBytes(chunk);
  }
  return { bytes, end: last.subarray(-500).toString() };
};

/** Pages of 100 over 32 connections, with limits in Redis (ours) and without limits (peer). */
const benchSmallPages = async (
  limited: string,
  unlimited: string,
  key: string,
  log: Log,
): Promise<Result[]> => {
  const requests = Array.from({ length: CONNECTIONS }, (_, index) => ({
    path: `/api/v2/export/conversations?${windowQuery(index / CONNECTIONS, SMALL_PAGE)}`,
  }));
  const run = async (apiUrl: string, seconds: number): Promise<{ rps: number; p99: number }> => {
    const result = await autocannon({
      url: new URL(apiUrl).origin,
      connections: CONNECTIONS,
      duration: seconds,
      headers: { authorization: `Bearer ${key}` },
      requests,
    });
    if (result.non2xx + result.errors > 0) {
      throw new Error(`${result.non2xx} answers other than 200 and ${result.errors} errors from ${apiUrl}`);
    }
    return { rps: result["2xx"] / result.duration, p99: result.latency.p99 };
  };
  const ours: { rps: number; p99: number }[] = [];
  const peers: { rps: number; p99: number }[] = [];
  for (const api of [limited, unlimited]) await run(api, 2);
  for (let round = 0; round < SMALL_ROUNDS; round += 1) {
    ours.push(await run(limited, SMALL_SECONDS));
    peers.push(await run(unlimited, SMALL_SECONDS));
    log(
      `small pages: ${ours.at(-1)?.rps.toFixed(0)}/s with limits, ${peers.at(-1)?.rps.toFixed(0)}/s without`,
    );
  }
  const [rps, peerRps] = [ours, peers].map((all) => median(all.map((one) => one.rps))) as [number, number];
  const [p99, peerP99] = [ours, peers].map((all) => median(all.map((one) => one.p99))) as [number, number];
  return [
    {
      name: "small_page_rps",
      ours: rps,
      peer: peerRps,
      ratio: rps / peerRps,
      goal: ">=0.9",
      reached: rps / peerRps >= 0.9,
    },
    {
      name: "small_page_p99_ms",
      ours: p99,
      peer: peerP99,
      ratio: p99 / peerP99,
      goal: "<=1.25",
      reached: p99 / peerP99 <= 1.25,
    },
  ];
};

/** A page of 10,000, compressed (ours) and uncompressed (peer), in MB of JSON a second. */
const benchCompression = async (apiUrl: string, key: string, log: Log): Promise<Result[]> => {
  const url = `${apiUrl}/v2/export/conversations?${windowQuery(0.5, LARGE_PAGE)}`;
  const page = (coding: Codings): Promise<Readable> =>
    open(url, { authorization: `Bearer ${key}`, "accept-encoding": coding });
  const plain = await drain(await page("identity"));
  for (const [coding, decoder] of [
    ["gzip", createGunzip()],
    ["zstd", createZstdDecompress()],
  ] as const) {
    let sent = 0;
    const body = await page(coding);
    body.on("data", (chunk: Buffer) => (sent += chunk.length));
    const { bytes } = await drain(body.pipe(decoder));
    if (bytes !== plain.bytes) throw new Error(`${bytes} bytes through ${coding}, ${plain.bytes} without it`);
    log(
      `a page of ${(bytes / MEGABYTE).toFixed(1)} MB is ${((sent / bytes) * 100).toFixed(0)}% with ${coding}`,
    );
  }
  const [identity = Number.NaN, gzip = Number.NaN, zstd = Number.NaN] = await interleaved(
    (["identity", "gzip", "zstd"] as const).map((coding) => async () => drain(await page(coding))),
    { rounds: 9, warm: 2 },
  );
  const speed = (ms: number): number => (plain.bytes / MEGABYTE / ms) * 1000;
  return [
    { name: "compressed_page_mbs_gzip", ms: gzip, goal: 0.3 },
    { name: "compressed_page_mbs_zstd", ms: zstd, goal: 0.5 },
  ].map(({ name, ms, goal }) => ({
    name,
    ours: speed(ms),
    peer: speed(identity),
    ratio: identity / ms,
    goal: `>=${goal}`,
    reached: identity / ms >= goal,
  }));
};

/** The peer of whole windows: one query with the same records in the same order. */
const WHOLE_WINDOW = `SELECT concat(r.head, if(empty(h.entries), '[]', h.entries), r.tail) AS record
  FROM (SELECT date_created, conversation_id, head, tail FROM conversations FINAL
    WHERE client_id = 'bench' AND date_created >= fromUnixTimestamp64Micro({since:Int64}, 'UTC')
      AND date_created < fromUnixTimestamp64Micro({to:Int64}, 'UTC')) AS r
  LEFT JOIN (SELECT conversation_date_created, conversation_id,
      concat('[', arrayStringConcat(arrayMap(h -> h.4, arraySort(
        groupArray((date_created, target, target_kind, entry)))), ','), ']') AS entries
    FROM handoffs FINAL
    WHERE client_id = 'bench' AND notEmpty(entry) AND conversation_date_created >= fromUnixTimestamp64Micro({since:Int64}, 'UTC')
      AND conversation_date_created < fromUnixTimestamp64Micro({to:Int64}, 'UTC')
    GROUP BY conversation_date_created, conversation_id) AS h
    ON h.conversation_date_created = r.date_created AND h.conversation_id = r.conversation_id
  ORDER BY r.date_created, r.conversation_id`;
/** Streams in the order of the table; by default ClickHouse sorts all records and exceeds its memory. */
const WHOLE_WINDOW_SETTINGS = {
  do_not_merge_across_partitions_select_final: 1,
  join_algorithm: "hash",
  max_bytes_ratio_before_external_join: 0,
};

/** A whole window as lines, against one query that reads the same lines from ClickHouse, in MB a second. */
const benchLines = async (
  system: System,
  { apiUrl, pid, key }: { apiUrl: string; pid: number; key: string },
  conversations: number,
  log: Log,
): Promise<Result[]> => {
  const readerUrl = system.stack.clickhouse.url("reader");
  const idle = peakMegabytes(pid);
  const ours = (): Promise<Readable> =>
    open(`${apiUrl}/v2/export/conversations?${windowQuery(0, LARGE_PAGE)}`, {
      authorization: `Bearer ${key}`,
      accept: "application/x-ndjson",
      "accept-encoding": "identity",
    });
  const peer = (): Promise<Readable> =>
    openSql(readerUrl, `${WHOLE_WINDOW} FORMAT TSVRaw`, {
      parameters: { since: WINDOW_START, to: WINDOW_END },
      settings: WHOLE_WINDOW_SETTINGS,
    });
  const straight = createHash("sha1");
  const { bytes } = await drain(await peer(), (chunk) => straight.update(chunk));
  const wanted = straight.digest("hex");
  // All lines except the last one, the trailer.
  const lines = createHash("sha1");
  let left = bytes;
  const { end } = await drain(await ours(), (chunk) => {
    lines.update(chunk.subarray(0, left));
    left -= Math.min(left, chunk.length);
  });
  if (lines.digest("hex") !== wanted) throw new Error("the lines are not those of the warehouse");
  if (!end.includes(`"count":${conversations}`)) throw new Error(`the lines end with ${end}`);
  log(`${(bytes / MEGABYTE).toFixed(0)} MB of lines, the same from both`);

  const [streamed = Number.NaN, queried = Number.NaN] = await interleaved(
    [
      async () => {
        const { end: last } = await drain(await ours());
        if (!last.includes(`"count":${conversations}`)) throw new Error(`the lines end with ${last}`);
      },
      async () => drain(await peer()),
    ],
    { rounds: 3, warm: 0 },
  );
  const peak = peakMegabytes(pid);
  const speed = (ms: number): number => (bytes / MEGABYTE / ms) * 1000;
  return [
    {
      name: "ndjson_vs_clickhouse",
      ours: speed(streamed),
      peer: speed(queried),
      ratio: queried / streamed,
      goal: ">=0.8",
      reached: queried / streamed >= 0.8,
    },
    {
      name: "ndjson_peak_mb",
      ours: peak,
      peer: idle,
      ratio: peak / idle,
      goal: "ours<300",
      reached: peak < 300,
    },
  ];
};

/** The same window as Parquet, against one query that makes the same columns, in records a second. */
const benchParquet = async (
  system: System,
  { apiUrl, pid, key }: { apiUrl: string; pid: number; key: string },
  conversations: number,
  log: Log,
): Promise<Result[]> => {
  const idle = peakMegabytes(pid);
  const ours = (): Promise<Readable> =>
    open(`${apiUrl}/v2/export/conversations?${windowQuery(0, LARGE_PAGE)}`, {
      authorization: `Bearer ${key}`,
      accept: "application/vnd.apache.parquet",
    });
  const columns = typedColumns(RECORD_COLUMNS.conversation, WHOLE_WINDOW, false);
  const peer = (): Promise<Readable> =>
    openSql(system.stack.clickhouse.url("reader"), `${columns} FORMAT Parquet`, {
      parameters: { since: WINDOW_START, to: WINDOW_END },
      settings: { ...PARQUET_SETTINGS, ...WHOLE_WINDOW_SETTINGS },
    });
  const [sent, made] = [await drain(await ours()), await drain(await peer())];
  for (const { end } of [sent, made]) if (!end.endsWith("PAR1")) throw new Error("no whole file");
  if (!sent.end.includes(String(conversations))) throw new Error(`the file ends with ${sent.end}`);
  log(
    `a file of ${(sent.bytes / MEGABYTE).toFixed(0)} MB, ${(made.bytes / MEGABYTE).toFixed(0)} MB from ClickHouse`,
  );
  const [streamed = Number.NaN, queried = Number.NaN] = await interleaved(
    [async () => drain(await ours()), async () => drain(await peer())],
    { rounds: 3, warm: 0 },
  );
  const peak = peakMegabytes(pid);
  const speed = (ms: number): number => (conversations / ms) * 1000;
  return [
    {
      name: "parquet_vs_clickhouse",
      ours: speed(streamed),
      peer: speed(queried),
      ratio: queried / streamed,
      goal: ">=0.8",
      reached: queried / streamed >= 0.8,
    },
    {
      name: "parquet_peak_mb",
      ours: peak,
      peer: idle,
      ratio: peak / idle,
      goal: "ours<300",
      reached: peak < 300,
    },
  ];
};

/** Measures limits, compression, and whole windows as lines and as Parquet. */
export const benchHttp = async (system: System, conversations: number, log: Log): Promise<Result[]> => {
  const operator = system.stack.clickhouse.url("migrator");
  await fillWindow(operator, { conversations, exports: 2, summaries: "prose", byUpdate: false }, log);
  await jobsBeside(system);
  await mergesIdle(operator);
  const key = await system.key("bench");
  const unlimited = await system.service("export-api", API_ENV);
  const lines = await benchLines(
    system,
    { apiUrl: system.apiUrl, pid: unlimited.pid, key },
    conversations,
    log,
  );
  const parquet = await benchParquet(
    system,
    { apiUrl: system.apiUrl, pid: unlimited.pid, key },
    conversations,
    log,
  );
  const compression = await benchCompression(system.apiUrl, key, log);
  const limited = await system.anotherApi({ ...API_ENV, RATE_LIMITS: WIDE_LIMITS });
  const small = await benchSmallPages(limited.apiUrl, system.apiUrl, key, log);
  await limited.process.kill("SIGTERM");
  await unlimited.kill("SIGTERM");
  return [...small, ...compression, ...lines, ...parquet];
};
