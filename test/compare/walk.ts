import { setImmediate } from "node:timers/promises";
import { fetchPatiently } from "./patient-fetch.ts";
import { splitRecords } from "./split-records.ts";

export type Page = {
  readonly status: number;
  readonly text: string;
  readonly records: string[];
  readonly next: string | null;
};

export const splitPage = (body: string): { records: string[]; next: string | null } => {
  const prefix = '{"data":[';
  const end = body.lastIndexOf('],"meta":');
  if (!body.startsWith(prefix) || end === -1) throw new Error(`not a page: ${body.slice(0, 200)}`);
  const meta = JSON.parse(body.slice(end + '],"meta":'.length, -1)) as {
    next_page_uri?: string | null;
    next_page_url?: string | null;
  };
  const records = splitRecords(body.slice(prefix.length, end));
  return { records, next: meta.next_page_uri ?? meta.next_page_url ?? null };
};

/** Throws unless 200. */
export const getPage = async (url: string, key: string): Promise<Page> => {
  // Lets fetch see connections that the service closed meanwhile.
  await setImmediate();
  const response = await fetchPatiently(url, { headers: { authorization: `Bearer ${key}` } });
  const text = await response.text();
  if (response.status !== 200) throw new Error(`${response.status} for ${url}: ${text.slice(0, 500)}`);
  return { status: response.status, text, ...splitPage(text) };
};

/** Throws when a link repeats. */
export const walkPages = async function* (url: string, key: string): AsyncGenerator<Page> {
  const seen = new Set<string>();
  for (let next: string | null = url; next !== null; ) {
    if (seen.has(next)) throw new Error(`the link repeats itself: ${next}`);
    seen.add(next);
    const page: Page = await getPage(next, key);
    yield page;
    next = page.next;
  }
};

export const walk = async (
  url: string,
  key: string,
  onPage: (page: Page, count: number) => void = () => {},
): Promise<string[]> => {
  const records: string[] = [];
  for await (const page of walkPages(url, key)) {
    for (const record of page.records) records.push(record);
    onPage(page, records.length);
  }
  return records;
};

export const splitLegacyPage = (body: string): { records: string[]; next: string | null } => {
  const end = body.lastIndexOf('],"message":"OK",');
  if (end === -1) throw new Error(`not a legacy page: ${body.slice(0, 200)}`);
  return splitPage(`${body.slice(0, end)}],"meta":{${body.slice(end + '],"message":"OK",'.length)}}`);
};
