import { createHash } from "node:crypto";
import { request } from "node:http";
import { updateWindows } from "@conversation-export/domain";
import { createSession, createWindowStore } from "@conversation-export/warehouse";
import { splitPage } from "../compare/walk.ts";
import { runSql } from "./warehouse-sql.ts";

const SECOND = 1_000_000;
const WINDOW_SECONDS = 3_600;

export const closeAllWindows = async (jobsUrl: string): Promise<void> => {
  const session = createSession({ url: jobsUrl, application: "test" });
  const store = createWindowStore({ session, windowSeconds: WINDOW_SECONDS });
  try {
    const length = WINDOW_SECONDS * SECOND;
    const now = Date.now() * 1000 + 2 * length;
    const counted = await store.count(0);
    const input = { stored: [], counted, now, length, grace: 0, oldestUpload: null };
    await store.save(updateWindows(input).lines);
  } finally {
    await session.close();
  }
};

export const keepParts = async (migratorUrl: string, tables: readonly string[]): Promise<void> => {
  for (const table of tables)
    await runSql(
      migratorUrl,
      `ALTER TABLE ${table} MODIFY SETTING max_bytes_to_merge_at_max_space_in_pool = 1,
        max_bytes_to_merge_at_min_space_in_pool = 1`,
    );
};

const get = (url: string, key: string): Promise<string> =>
  new Promise((resolve, reject) => {
    const sent = request(url, { headers: { authorization: `Bearer ${key}` } }, (response) => {
      const chunks: Buffer[] = [];
      response.on("data", (chunk: Buffer) => chunks.push(chunk));
      response.on("error", reject);
      response.on("end", () => {
        const text = Buffer.concat(chunks).toString();
        if (response.statusCode === 200) resolve(text);
        else reject(new Error(`${response.statusCode} for ${url}: ${text.slice(0, 300)}`));
      });
    });
    sent.on("error", reject);
    sent.end();
  });

export type Walk = {
  readonly pages: readonly { readonly url: string; readonly hash: string }[];
  /** After compaction compare this: pages by update then begin elsewhere. */
  readonly records: string;
};

export const walkWindow = async (
  url: string,
  key: string,
  onPage: (ms: number) => void = () => {},
): Promise<Walk> => {
  const pages: { url: string; hash: string }[] = [];
  const all = createHash("sha256");
  for (let next: string | null = url; next !== null; ) {
    const started = performance.now();
    const text: string = await get(next, key);
    onPage(performance.now() - started);
    pages.push({ url: next, hash: createHash("sha256").update(text).digest("hex") });
    const { records, next: link } = splitPage(text);
    for (const record of records) all.update(record).update("\n");
    next = link;
  }
  return { pages, records: all.digest("hex") };
};

export const quantile = (values: readonly number[], share: number): number =>
  values.toSorted((a, b) => a - b)[Math.min(values.length - 1, Math.floor(values.length * share))] ??
  Number.NaN;
