import { formatTimestampZ, type LinkBounds, parseTimestamp } from "@conversation-export/domain";
import fc from "fast-check";
import { expect, it } from "vitest";
import { AUTHORIZED, createListReader, createTestApp, type StoredRecord } from "../http/app.fixture.ts";

const START = parseTimestamp("2024-03-01T00:00:00Z") ?? 0;
type PageBody = { data: StoredRecord[]; meta: { next_page_uri: string | null } };

/** The target of the client's next request. */
const KINDS = {
  "follows the link": (_first: string, link: string) => new URL(link).pathname + new URL(link).search,
  "prefixes its host to the link": (_first: string, link: string) => `/${link}`,
  "takes the lower bound alone": (first: string, link: string) => {
    const next = new URL(first, "http://own.example");
    for (const name of ["created_since", "updated_since"]) {
      const value = new URL(link).searchParams.get(name);
      if (value !== null) next.searchParams.set(name, value);
    }
    return next.pathname + next.search;
  },
};

type Served = { readonly app: ReturnType<typeof createTestApp>["app"]; readonly records: StoredRecord[] };
const served = new Map<string, Served>();

/** Kept, because making a service takes longer than a walk. */
const serve = (
  records: readonly StoredRecord[],
  linkBounds: LinkBounds,
  extension: number | undefined,
): Served["app"] => {
  const name = `${linkBounds} ${extension}`;
  let found = served.get(name);
  if (found === undefined) {
    const own: StoredRecord[] = [];
    const { reader } = createListReader({ records: own, ...(extension !== undefined && { extension }) });
    const { app } = createTestApp(reader, { linkBounds, keyCacheMs: 60_000 });
    found = { app, records: own };
    served.set(name, found);
  }
  found.records.splice(0, Infinity, ...records);
  return found.app;
};

const walk = async (options: {
  records: readonly StoredRecord[];
  first: string;
  linkBounds: LinkBounds;
  nextTarget: (first: string, link: string) => string;
  extension?: number;
}) => {
  const { records, first, linkBounds, nextTarget, extension } = options;
  const app = serve(records, linkBounds, extension);
  const pages: StoredRecord[][] = [];
  const read = async (target: string): Promise<string | null> => {
    const response = await app.inject({ url: target, headers: { ...AUTHORIZED, host: "export.example" } });
    expect(response.statusCode, response.body).toBe(200);
    const { data, meta } = response.json<PageBody>();
    pages.push(data);
    return meta.next_page_uri;
  };
  let link = await read(first);
  while (link !== null) {
    if (pages.length > records.length + 2) throw new Error("the walk does not end");
    link = await read(nextTarget(first, link));
  }
  return pages;
};

// Few distinct dates make many and large ties.
const list = fc
  .tuple(
    fc.integer({ min: 1, max: 40 }),
    fc.array(fc.tuple(fc.nat({ max: 1_000_000 }), fc.nat({ max: 1_000_000 })), {
      minLength: 150,
      maxLength: 700,
    }),
  )
  .map(([spread, dates]): StoredRecord[] =>
    dates.map(([created, updated], index) => ({
      clientId: index % 11 === 10 ? "other" : "acme",
      created: START + (created % spread),
      updated: START + (updated % spread),
      id: `r${((index * 7919) % 100_003).toString(36)}`,
      conversationId: `c${index % 2}`,
    })),
  );
const pageSize = fc.integer({ min: 100, max: 300 });
const route = fc.constantFrom(
  { path: "conversations", filter: "created" as const },
  { path: "conversations", filter: "updated" as const },
  { path: "messages", filter: "created" as const },
  { path: "messages", filter: "created" as const, conversationId: "c1" },
);
const to = fc.option(fc.integer({ min: 1, max: 50 }));

const requestFor = (
  { path, filter, conversationId }: { path: string; filter: string; conversationId?: string },
  size: number,
  to: number | null,
): string => {
  const query = new URLSearchParams({
    [`${filter}_since`]: formatTimestampZ(START),
    ...(to !== null && { [`${filter}_to`]: formatTimestampZ(START + to) }),
    ...(conversationId !== undefined && { conversation_id: conversationId }),
    page_size: String(size),
  });
  return `/api/v2/export/${path}?${String(query)}`;
};

const expectedIds = (
  records: readonly StoredRecord[],
  { filter, conversationId }: { filter: "created" | "updated"; conversationId?: string },
  to: number | null,
): string[] =>
  records
    .filter(
      (row) =>
        row.clientId === "acme" &&
        (conversationId === undefined || row.conversationId === conversationId) &&
        (to === null || row[filter] < START + to),
    )
    .sort((a, b) => a[filter] - b[filter] || (a.id < b.id ? -1 : 1))
    .map(({ id }) => id);

const idsOf = (pages: StoredRecord[][]): string[] => pages.flat().map(({ id }) => id);

it.each([
  "follows the link",
  "prefixes its host to the link",
] as const)("style same: a client that %s gets everything once, in order, in pages of the size it asked for", async (kind) => {
  await fc.assert(
    fc.asyncProperty(list, pageSize, route, to, async (records, size, route, to) => {
      const first = requestFor(route, size, to);
      const pages = await walk({ records, first, linkBounds: "same", nextTarget: KINDS[kind] });
      expect(idsOf(pages)).toEqual(expectedIds(records, route, to));
      for (const page of pages.slice(0, -1)) expect(page).toHaveLength(size);
    }),
  );
});

it.each(
  Object.keys(KINDS) as (keyof typeof KINDS)[],
)("style advancing: a client that %s gets everything once, in order", async (kind) => {
  await fc.assert(
    fc.asyncProperty(list, pageSize, route, to, async (records, size, route, to) => {
      const first = requestFor(route, size, to);
      const pages = await walk({ records, first, linkBounds: "advancing", nextTarget: KINDS[kind] });
      expect(idsOf(pages)).toEqual(expectedIds(records, route, to));
    }),
  );
});

it.each([
  "follows the link",
  "prefixes its host to the link",
] as const)("style advancing: an instant larger than a page can grow is split, and a client that %s gets it whole", async (kind) => {
  await fc.assert(
    fc.asyncProperty(list, route, fc.nat({ max: 20 }), async (records, route, extension) => {
      const first = requestFor(route, 100, null);
      const nextTarget = KINDS[kind];
      const pages = await walk({ records, first, linkBounds: "advancing", nextTarget, extension });
      expect(idsOf(pages)).toEqual(expectedIds(records, route, null));
      for (const page of pages) expect(page.length).toBeLessThanOrEqual(100 + extension);
    }),
  );
});
