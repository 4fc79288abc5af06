import { type Folded, windowCreated, windowUpdated } from "../reference/index.ts";
import { type Compared, createComparison } from "./comparison.ts";
import { walkPages } from "./walk.ts";

const SINCE = "1970-01-01T00:00:00Z";
const TO = "2105-12-31T00:00:00Z";
const ALL = 1n << 62n;

const LISTS = [
  { name: "conversations by creation", path: `conversations?created_since=${SINCE}&created_to=${TO}` },
  { name: "conversations by update", path: `conversations?updated_since=${SINCE}&updated_to=${TO}` },
  { name: "messages by creation", path: `messages?created_since=${SINCE}&created_to=${TO}` },
] as const;

type ListName = (typeof LISTS)[number]["name"];

const expectedOf = (folded: Folded, client: string, list: ListName) => {
  switch (list) {
    case "conversations by creation":
      return windowCreated(folded.conversations, client, 0n, ALL);
    case "conversations by update":
      return windowUpdated(folded.conversations, client, 0n, ALL);
    case "messages by creation":
      return windowCreated(folded.messages, client, 0n, ALL);
  }
};

export type ComparedList = Compared & { readonly client: string; readonly list: ListName };

type Progress = { readonly records: number; readonly bytes: number };

/** Order and text, without record_last_updated. */
export const compareLists = async (
  apiUrl: string,
  folded: Folded,
  keys: ReadonlyMap<string, string>,
  pageSize: number,
  onPage: (progress: Progress) => void = () => {},
): Promise<ComparedList[]> => {
  const compareClient = async ([client, key]: readonly [string, string]): Promise<ComparedList[]> => {
    const compared: ComparedList[] = [];
    for (const { name, path } of LISTS) {
      const comparison = createComparison(expectedOf(folded, client, name));
      for await (const page of walkPages(`${apiUrl}/v2/export/${path}&page_size=${pageSize}`, key)) {
        comparison.take(page.records);
        onPage({ records: page.records.length, bytes: Buffer.byteLength(page.text) });
      }
      compared.push({ client, list: name, ...comparison.finish() });
    }
    return compared;
  };
  return (await Promise.all([...keys].map(compareClient))).flat();
};

export const compareExports = async (
  apiUrl: string,
  folded: Folded,
  keys: ReadonlyMap<string, string>,
  pageSize = 5_000,
): Promise<ComparedList[]> =>
  (await compareLists(apiUrl, folded, keys, pageSize)).filter(({ problems }) => problems > 0);
