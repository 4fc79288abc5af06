import { text } from "node:stream/consumers";
import { formatTimestampZ } from "@conversation-export/domain";
import { drain } from "./answers.ts";
import { costOf, inPairs } from "./pairs.ts";
import { AT_ITS_BEST, openPlain, type Range } from "./plain-query.ts";
import { at, get, openPath, pagePath, pathOf, type Reading } from "./reading.ts";
import { resultOf, type Result } from "./report.ts";
import { openSql, runSql } from "./warehouse-http.ts";
import { LATE, PROMPT, WINDOW_END } from "./window-data.ts";

const PLACES = [0.08, 0.2, 0.33, 0.45, 0.58, 0.7, 0.83, 0.95];
const placeOf = (call: number): number => PLACES[call % PLACES.length] ?? 0;
const LARGE = 10_000;
const SMALL = 100;
/** About half a second between readings of the processor time. */
const callsOf = (size: number): number => (size === LARGE ? 1 : 4) * PLACES.length;
const EMPTY_CALLS = 200;

type Page = (call: number) => Promise<{ readonly bytes: number }>;

/** The first page from each place on. */
const firstPages = (reading: Reading, client: string, size: number): Page => {
  return (call) => get(reading, client, pagePath("created", at(placeOf(call)), size));
};

/** The page behind the first one from each place on, by its link: what nearly all pages of a walk are. */
const pagesOfWalks = async (
  reading: Reading,
  by: "created" | "updated",
  client: string,
  size: number,
): Promise<Page> => {
  const linkBehind = async (place: number): Promise<string> => {
    const first = await text(await openPath(reading, client, pagePath(by, at(place), size)));
    const { meta } = JSON.parse(first) as { readonly meta: { readonly next_page_uri: string } };
    const { pathname, search } = new URL(meta.next_page_uri);
    return `${pathname.slice(pathname.indexOf("/v2/"))}${search}`;
  };
  const links = await Promise.all(PLACES.map(linkBehind));
  return (call) => get(reading, client, links[call % links.length] as string);
};
const created = (reading: Reading, client: string, size: number): Promise<Page> =>
  pagesOfWalks(reading, "created", client, size);
const updated = (reading: Reading, client: string, size: number): Promise<Page> =>
  pagesOfWalks(reading, "updated", client, size);
const changes = async (reading: Reading, client: string, size: number): Promise<Page> => {
  return (call) =>
    get(
      reading,
      client,
      pathOf("changes/conversations", { stored_since: formatTimestampZ(at(placeOf(call))), page_size: size }),
    );
};

/** The plain statements for the records of the first or second page from each place on, in exactly their bounds. */
const plain = async (reading: Reading, client: string, size: number, page: 1 | 2): Promise<Page> => {
  const url = reading.system.stack.clickhouse.url("reader");
  const boundOf = async (since: number): Promise<Range> => {
    const { text: end } = await runSql(
      url,
      `SELECT toUnixTimestamp64Micro(max(date_created)) + 1 FROM (SELECT DISTINCT date_created, conversation_id FROM conversations
        WHERE client_id = '${client}' AND date_created >= fromUnixTimestamp64Micro(toInt64(${since}), 'UTC')
        ORDER BY date_created, conversation_id LIMIT ${size})`,
    );
    return { client, since, to: Number(end) };
  };
  const firsts = await Promise.all(PLACES.map((place) => boundOf(at(place))));
  const ranges = page === 1 ? firsts : await Promise.all(firsts.map(({ to }) => boundOf(to)));
  return async (call) =>
    drain(await openPlain(url, ranges[call % PLACES.length] as Range, { settings: AT_ITS_BEST }));
};

/** Bytes in addition to the records. */
const ENVELOPE = 1_000;
const checkSame = async (ours: Page, peer: Page): Promise<void> => {
  for (const call of PLACES.keys()) {
    const [sent, made] = [await ours(call), await peer(call)];
    const more = sent.bytes - made.bytes;
    if (more < 0 || more > ENVELOPE) throw new Error(`${sent.bytes} bytes against ${made.bytes} of the peer`);
  }
};

export const benchCreated = async (reading: Reading): Promise<Result[]> => {
  const beside = async (name: string, size: number, ours: Page, peer: Page): Promise<Result> => {
    await checkSame(ours, peer);
    const calls = callsOf(size);
    const pairs = await inPairs(
      costOf({ processes: reading.both, calls }, ours),
      costOf({ processes: reading.server, calls }, peer),
    );
    return resultOf(name, "ms", pairs);
  };
  const results: Result[] = [];
  for (const size of [LARGE, SMALL]) {
    const [ours, peer] = [await created(reading, LATE, size), await plain(reading, LATE, size, 2)];
    results.push(await beside(`created_page_${size}`, size, ours, peer));
  }
  const [first, peer] = [firstPages(reading, LATE, SMALL), await plain(reading, LATE, SMALL, 1)];
  results.push(await beside(`first_page_${SMALL}`, SMALL, first, peer));
  return results;
};

const besideCreated = async (
  reading: Reading,
  works: readonly (readonly [name: string, page: typeof updated, client: string, size: number])[],
): Promise<Result[]> => {
  const results: Result[] = [];
  for (const [name, page, client, size] of works) {
    const deps = { processes: reading.both, calls: callsOf(size) };
    const pairs = await inPairs(
      costOf(deps, await page(reading, client, size)),
      costOf(deps, await created(reading, client, size)),
    );
    results.push(resultOf(name, "ms", pairs));
  }
  return results;
};

export const benchUpdated = (reading: Reading): Promise<Result[]> =>
  besideCreated(reading, [
    [`updated_page_${LARGE}`, updated, LATE, LARGE],
    [`updated_page_${SMALL}`, updated, LATE, SMALL],
  ]);

export const benchChanges = (reading: Reading): Promise<Result[]> =>
  besideCreated(reading, [
    [`changes_page_${LARGE}`, changes, PROMPT, LARGE],
    [`changes_page_${SMALL}`, changes, PROMPT, SMALL],
    [`changes_page_${LARGE}_late`, changes, LATE, LARGE],
  ]);

export const benchEmpty = async (reading: Reading): Promise<Result[]> => {
  const path = pagePath("created", WINDOW_END, SMALL);
  const url = reading.system.stack.clickhouse.url("reader");
  const pairs = await inPairs(
    costOf({ processes: reading.both, calls: EMPTY_CALLS }, () => get(reading, LATE, path)),
    costOf({ processes: reading.server, calls: EMPTY_CALLS }, async () =>
      drain(await openSql(url, "SELECT 1")),
    ),
  );
  return [resultOf("empty_page", "ms", pairs)];
};
