import { text } from "node:stream/consumers";
import type { Page, PagePosition, PageQuery } from "@conversation-export/warehouse";

export function splitRecords(page: string): string[] {
  const records: string[] = [];
  let depth = 0;
  let start = 0;
  let isText = false;
  for (let at = 0; at < page.length; at += 1) {
    const char = page[at];
    if (isText) {
      if (char === "\\") at += 1;
      else if (char === '"') isText = false;
      continue;
    }
    if (char === '"') isText = true;
    else if (char === "{") depth += 1;
    else if (char === "}") {
      depth -= 1;
      if (depth === 0) {
        records.push(page.slice(start, at + 1));
        if (at + 1 < page.length && page[at + 1] !== ",") throw new Error(`no comma behind ${at}`);
        start = at + 2;
      }
    }
  }
  if (start < page.length) throw new Error(`text behind the last record: ${page.slice(start, start + 100)}`);
  return records;
}

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
