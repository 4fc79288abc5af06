import type { Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import { isDeepStrictEqual } from "node:util";
import { createGunzip, createZstdDecompress } from "node:zlib";
import { columnsOf, formatTimestampZ, RECORD_KINDS } from "@conversation-export/domain";
import { PARQUET_SETTINGS, typedColumns } from "@conversation-export/warehouse";
import { readParquet } from "../outside/parquet-file.ts";
import { drain, hashed } from "./answers.ts";
import { costOf, inPairs } from "./pairs.ts";
import { AT_ITS_BEST, IN_ORDER, openPlain, PLAIN_RECORDS, type Range } from "./plain-query.ts";
import { at, openPath, pathOf, type Reading } from "./reading.ts";
import { resultOf, type Result } from "./report.ts";
import { LATE, WINDOW_END } from "./window-data.ts";

const LINES_SHARE = 0.125;
const PARQUET_SHARE = 0.05;

const rangeOf = (share: number): Range => ({ client: LATE, since: at(1 - share), to: WINDOW_END });

const openRange = (
  reading: Reading,
  { client, since, to }: Range,
  headers: Readonly<Record<string, string>>,
): Promise<Readable> =>
  openPath(
    reading,
    client,
    pathOf("conversations", { created_since: formatTimestampZ(since), created_to: formatTimestampZ(to) }),
    headers,
  );

const sameLines = async (made: Readable, sent: Readable): Promise<{ bytes: number; records: number }> => {
  const { bytes, digest } = await hashed(made);
  const { digest: ours, end } = await hashed(sent, bytes);
  const records = Number(/"count":(\d+)/.exec(end)?.[1]);
  if (ours !== digest || Number.isNaN(records))
    throw new Error(`other lines than the peer's, ending with ${end}`);
  return { bytes, records };
};

const CODINGS = { plain: "identity", gzip: "gzip", zstd: "zstd" } as const;

export const benchLines = async (reading: Reading): Promise<Result[]> => {
  const url = reading.system.stack.clickhouse.url("reader");
  const range = rangeOf(LINES_SHARE);
  const results: Result[] = [];
  for (const [name, coding] of Object.entries(CODINGS)) {
    const ours = (): Promise<Readable> =>
      openRange(reading, range, { accept: "application/x-ndjson", "accept-encoding": coding });
    const peer = (): Promise<Readable> =>
      openPlain(url, range, {
        settings: {
          ...AT_ITS_BEST,
          max_block_size: 4096,
          enable_http_compression: coding === "identity" ? 0 : 1,
        },
        headers: { "accept-encoding": coding },
      });
    const decoded = async (body: Promise<Readable>): Promise<Readable> => {
      if (coding === "identity") return body;
      return (await body).pipe(coding === "gzip" ? createGunzip() : createZstdDecompress());
    };
    const { bytes, records } = await sameLines(await decoded(peer()), await decoded(ours()));
    const sizes = [await drain(await ours()), await drain(await peer())].map((one) => one.bytes / bytes);
    const units = records / 1_000;
    const pairs = await inPairs(
      costOf({ processes: reading.both, units }, async () => drain(await ours())),
      costOf({ processes: reading.server, units }, async () => drain(await peer())),
      { warm: 1 },
    );
    const [size = Number.NaN, peerSize = Number.NaN] = sizes;
    results.push(resultOf(`lines_${name}`, "ms/1000", pairs, { records, size, peer_size: peerSize }));
  }
  return results;
};

export const benchParquet = async (reading: Reading): Promise<Result[]> => {
  const range = rangeOf(PARQUET_SHARE);
  const columns = typedColumns(columnsOf(RECORD_KINDS.conversation.public), PLAIN_RECORDS, false);
  const openOurs = () => openRange(reading, range, { accept: "application/vnd.apache.parquet" });
  const openPeer = () =>
    openPlain(
      reading.system.stack.clickhouse.url("reader"),
      range,
      { settings: { ...PARQUET_SETTINGS, ...IN_ORDER } },
      `${columns} FORMAT Parquet`,
    );
  const rows = await readParquet(await buffer(await openOurs()));
  const peerRows = await readParquet(await buffer(await openPeer()));
  const records = rows.length;
  if (records === 0 || !isDeepStrictEqual(rows, peerRows)) throw new Error("other rows than the peer's");
  const units = records / 1_000;
  const pairs = await inPairs(
    costOf({ processes: reading.both, units }, async () => drain(await openOurs())),
    costOf({ processes: reading.server, units }, async () => drain(await openPeer())),
    { warm: 1 },
  );
  return [resultOf("parquet", "ms/1000", pairs, { records })];
};
