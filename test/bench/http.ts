import type { Readable } from "node:stream";
import { createGunzip, createZstdDecompress } from "node:zlib";
import autocannon from "autocannon";
import type { System } from "../system/system.ts";
import { drain, open, windowQuery } from "./answers.ts";
import { jobsBeside } from "./jobs-beside.ts";
import { median, type Result } from "./report.ts";
import { interleaved } from "./rounds.ts";
import { benchCompressedLines, benchLines } from "./whole-window.ts";
import { fillWindow, mergesIdle } from "./window-data.ts";

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

/** Measures limits, compression, and whole windows as lines. */
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
  const compressedLines = await benchCompressedLines(system, { apiUrl: system.apiUrl, key }, log);
  const compression = await benchCompression(system.apiUrl, key, log);
  const limited = await system.anotherApi({ ...API_ENV, RATE_LIMITS: WIDE_LIMITS });
  const small = await benchSmallPages(limited.apiUrl, system.apiUrl, key, log);
  await limited.process.kill("SIGTERM");
  await unlimited.kill("SIGTERM");
  return [...small, ...compression, ...lines, ...compressedLines];
};
