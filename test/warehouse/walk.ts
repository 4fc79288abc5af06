import { text } from "node:stream/consumers";
import type { Page, PagePosition, PageQuery } from "@conversation-export/warehouse";
import { splitRecords } from "../compare/split-records.ts";

export async function readPage(page: Pick<Page, "records">): Promise<string[]> {
  return splitRecords(await text(page.records));
}

export type Walked = {
  readonly records: string[];
  readonly pages: { rows: number; next: PagePosition | null }[];
};

export async function walk<Q extends PageQuery>(
  read: (query: Q) => Promise<Page>,
  query: Q,
  between: (records: string[]) => Promise<void> = () => Promise.resolve(),
): Promise<Walked> {
  const walked: Walked = { records: [], pages: [] };
  let behind: Partial<Pick<PageQuery, "after" | "pace">> = {};
  for (;;) {
    const page = await read({ ...query, ...behind });
    const records = await readPage(page);
    const { rows, next, pace } = page.end();
    if (records.length !== rows) throw new Error(`${records.length} records in a page of ${rows} rows`);
    walked.records.push(...records);
    walked.pages.push({ rows, next });
    if (walked.pages.length > 10_000) throw new Error("the walk does not end");
    if (next === null) return walked;
    behind = { after: next, ...(pace !== undefined && { pace }) };
    await between(records);
  }
}
