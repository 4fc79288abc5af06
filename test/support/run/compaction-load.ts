import { request } from "node:http";
import { updateWindows } from "@conversation-export/domain";
import { createWindowStore } from "@conversation-export/warehouse";
import { splitPage } from "./walk.ts";
import { runSql } from "./warehouse-sql.ts";

const SECOND = 1_000_000;
const WINDOW_SECONDS = 3_600;

/** Enters everything that the tables hold into the ledger, as windows that are closed. */
export const closeAllWindows = async (jobsUrl: string): Promise<void> => {
  const store = createWindowStore({ url: jobsUrl, application: "test", windowSeconds: WINDOW_SECONDS });
  try {
    const length = WINDOW_SECONDS * SECOND;
    const now = Date.now() * 1000 + 2 * length;
    const counted = await store.count(0);
    const input = { stored: [], counted, now, length, grace: 0, oldestUpload: null };
    await store.save(updateWindows(input).lines);
  } finally {
    await store.close();
  }
};

/** Leaves the parts of these tables as they are inserted, until something asks for their merge. */
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

/** The pages of a window, in the order in which their links led to them. */
export type Pages = readonly { readonly url: string; readonly text: string }[];

/** Follows the links from `url` to the end; `onPage` gets the milliseconds of each page. */
export const readPages = async (
  url: string,
  key: string,
  onPage: (ms: number) => void = () => {},
): Promise<Pages> => {
  const pages: { url: string; text: string }[] = [];
  for (let next: string | null = url; next !== null; ) {
    const started = performance.now();
    const text: string = await get(next, key);
    onPage(performance.now() - started);
    pages.push({ url: next, text });
    next = splitPage(text).next;
  }
  return pages;
};

/** The records of the pages; pages by update may be cut elsewhere when superseded entries have gone. */
export const recordsOf = (pages: Pages): string =>
  pages.flatMap(({ text }) => splitPage(text).records).join("\n");

/** The value below which a share of the values lies. */
export const quantile = (values: readonly number[], share: number): number =>
  values.toSorted((a, b) => a - b)[Math.min(values.length - 1, Math.floor(values.length * share))] ??
  Number.NaN;
