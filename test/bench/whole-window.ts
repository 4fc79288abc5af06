import { createHash } from "node:crypto";
import type { Readable } from "node:stream";
import { createGunzip, createZstdDecompress } from "node:zlib";
import { RECORD_COLUMNS } from "@conversation-export/domain";
import { PARQUET_SETTINGS, typedColumns } from "@conversation-export/warehouse";
import { peakMegabytes } from "../system/process-memory.ts";
import type { System } from "../system/system.ts";
import { drain, open, windowQuery } from "./answers.ts";
import { type Result, speedResult } from "./report.ts";
import { interleaved } from "./rounds.ts";
import { openSql } from "./warehouse-http.ts";
import { WINDOW_END, WINDOW_MICROS, WINDOW_START } from "./window-data.ts";

const MEGABYTE = 1_000_000;
const LARGE_PAGE = 10_000;
const LAST_QUARTER = 0.75;
type Log = (line: string) => void;

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

/** What streams must reach of ClickHouse's own speed. */
const LEAST = 0.8;

/** `speeds`: ours and ClickHouse's; `peaks`: of export-api in MB, at the end and before. */
const resultsOf = (
  name: string,
  [ours, peer]: readonly [number, number],
  [peak, idle]: readonly [number, number],
): Result[] => [
  speedResult(`${name}_vs_clickhouse`, ours, peer, LEAST),
  {
    name: `${name}_peak_mb`,
    ours: peak,
    peer: idle,
    ratio: peak / idle,
    goal: "ours<300",
    reached: peak < 300,
  },
];

/** Reads to the end and hashes the first `most` bytes: all lines without the trailer of ours. */
const hashed = async (
  body: Readable,
  most = Infinity,
): Promise<{ readonly bytes: number; readonly digest: string; readonly end: string }> => {
  const hash = createHash("sha1");
  let left = most;
  const { bytes, end } = await drain(body, (chunk) => {
    hash.update(chunk.subarray(0, left));
    left -= Math.min(left, chunk.length);
  });
  return { bytes, digest: hash.digest("hex"), end };
};

/** A whole window as lines, against one query that reads the same lines from ClickHouse, in MB a second. */
export const benchLines = async (
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
  const { bytes, digest } = await hashed(await peer());
  const { digest: sent, end } = await hashed(await ours(), bytes);
  if (sent !== digest) throw new Error("the lines are not those of the warehouse");
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
  return resultsOf("ndjson", [speed(streamed), speed(queried)], [peak, idle]);
};

/**
 * The last quarter of the window as compressed lines, against ClickHouse's own compression of the one query at
 * its default level, which makes bodies of about the same length, in MB of JSON a second. Nobody decodes them
 * while they are timed.
 */
export const benchCompressedLines = async (
  system: System,
  { apiUrl, key }: { apiUrl: string; key: string },
  log: Log,
): Promise<Result[]> => {
  const results: Result[] = [];
  const since = WINDOW_START + Math.floor(WINDOW_MICROS * LAST_QUARTER);
  for (const [coding, decoder] of [
    ["gzip", createGunzip],
    ["zstd", createZstdDecompress],
  ] as const) {
    const ours = (): Promise<Readable> =>
      open(`${apiUrl}/v2/export/conversations?${windowQuery(LAST_QUARTER, LARGE_PAGE)}`, {
        authorization: `Bearer ${key}`,
        accept: "application/x-ndjson",
        "accept-encoding": coding,
      });
    const peer = (): Promise<Readable> =>
      openSql(system.stack.clickhouse.url("reader"), `${WHOLE_WINDOW} FORMAT TSVRaw`, {
        parameters: { since, to: WINDOW_END },
        settings: { ...WHOLE_WINDOW_SETTINGS, enable_http_compression: 1 },
        headers: { "accept-encoding": coding },
      });
    const decoders = [decoder(), decoder()] as const;
    const made = await hashed((await peer()).compose(decoders[0]));
    const sent = await hashed((await ours()).compose(decoders[1]), made.bytes);
    if (sent.digest !== made.digest) throw new Error(`the lines through ${coding} are others`);
    if (!sent.end.includes('"count":')) throw new Error(`the lines end with ${sent.end}`);
    const [peerBytes, ourBytes] = [decoders[0].bytesWritten, decoders[1].bytesWritten];
    const share = (bytes: number): string => `${((bytes / made.bytes) * 100).toFixed(1)}%`;
    log(
      `${(made.bytes / MEGABYTE).toFixed(0)} MB of lines are ${share(ourBytes)} with ${coding}, ${share(peerBytes)} from ClickHouse`,
    );
    if (ourBytes > 1.1 * peerBytes) throw new Error(`${coding} compresses less than ClickHouse does`);
    const [streamed = Number.NaN, queried = Number.NaN] = await interleaved(
      [async () => drain(await ours()), async () => drain(await peer())],
      { rounds: 3, warm: 0 },
    );
    const speed = (ms: number): number => (made.bytes / MEGABYTE / ms) * 1000;
    results.push(
      speedResult(`compressed_lines_vs_clickhouse_${coding}`, speed(streamed), speed(queried), LEAST),
    );
  }
  return results;
};

/** The same window as Parquet, against one query that makes the same columns, in records a second. */
export const benchParquet = async (
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
  return resultsOf("parquet", [speed(streamed), speed(queried)], [peak, idle]);
};
