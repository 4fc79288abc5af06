import { END_OF_TIME, formatTimestampZ, parseTimestamp } from "@conversation-export/domain";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import {
  type PageRequest,
  type PageRequestResult,
  readConversationParameters,
  readMessageParameters,
  readParameters,
  wholeNumber,
} from "./parameters.ts";

const read = (query: string): PageRequestResult => readConversationParameters(`/x?${query}`);
const requestOf = (result: PageRequestResult): PageRequest => {
  if ("problems" in result) throw new Error(result.problems.join("; "));
  return result.request;
};
const problemsOf = (result: PageRequestResult): readonly string[] => {
  if (!("problems" in result)) throw new Error("expected problems");
  return result.problems;
};
const micros = (text: string): number => parseTimestamp(text) ?? Number.NaN;

const SINCE = "created_since=2024-03-01T00:00:00Z";

describe("conversations", () => {
  it("takes a created window, seven days and 10,000 records by default", () => {
    expect(requestOf(read(SINCE))).toEqual({
      filter: "created",
      since: micros("2024-03-01T00:00:00Z"),
      to: micros("2024-03-08T00:00:00Z"),
      sinceText: "2024-03-01T00:00:00Z",
      toText: undefined,
      pageSize: 10_000,
      pageSizeGiven: false,
      conversationId: undefined,
      cursor: undefined,
    });
  });

  it("takes an updated window with microseconds, encoded or not", () => {
    const request = requestOf(
      read(
        "updated_since=2024-03-01T00%3A00%3A00.000001Z&updated_to=2024-03-01T00:00:00.000002Z&page_size=100",
      ),
    );
    expect(request).toMatchObject({
      filter: "updated",
      since: micros("2024-03-01T00:00:00.000001Z"),
      to: micros("2024-03-01T00:00:00.000002Z"),
      toText: "2024-03-01T00:00:00.000002Z",
      pageSize: 100,
      pageSizeGiven: true,
    });
  });

  it.each([
    "",
    "null",
  ])("takes an upper bound, the other upper bound and a cursor of %j as absent", (value) => {
    const request = requestOf(read(`${SINCE}&created_to=${value}&updated_to=${value}&cursor=${value}`));
    expect(request).toMatchObject({ filter: "created", toText: undefined, cursor: undefined });
    expect(request.to).toBe(micros("2024-03-08T00:00:00Z"));
  });

  it("clamps bounds outside the range of the service", () => {
    expect(
      requestOf(read("created_since=0001-01-01T00:00:00Z&created_to=9999-12-31T23:59:59Z")),
    ).toMatchObject({
      since: 0,
      to: END_OF_TIME,
    });
    // Seven days from a bound long before the range hold nothing.
    expect(requestOf(read("created_since=1950-01-01T00:00:00Z"))).toMatchObject({ since: 0, to: 0 });
    expect(requestOf(read("created_since=1969-12-30T00:00:00Z"))).toMatchObject({
      since: 0,
      to: micros("1970-01-06T00:00:00Z"),
    });
  });

  it.each([
    ["", "created_since"],
    ["page_size=100", "created_since"],
    ["created_to=2024-03-01T00:00:00Z", "created_to"],
    ["updated_to=2024-03-01T00:00:00Z", "updated_to"],
    [`${SINCE}&updated_since=2024-03-01T00:00:00Z`, "updated_since"],
    [`${SINCE}&updated_to=2024-03-01T00:00:00Z`, "updated_to"],
    [`${SINCE}&conversation_id=x`, "conversation_id"],
    [`${SINCE}&created_since=2024-03-01T00:00:00Z`, "created_since"],
    [`${SINCE}&page_size=100&page_size=100`, "page_size"],
    [`${SINCE}&created_to=&created_to=`, "created_to"],
    [`${SINCE}&Page_size=100`, "Page_size"],
    [`${SINCE}&created_since[]=x`, "created_since[]"],
    [`${SINCE}&__proto__=x`, "__proto__"],
    [`${SINCE}&constructor=x`, "constructor"],
    [`${SINCE}&page_size=%zz`, "page_size"],
    [`${SINCE}&cursor=%ff`, "cursor"],
    [`${SINCE}&%ff=1`, "query"],
  ])("refuses %s and names %s", (query, name) => {
    expect(problemsOf(read(query)).join("; ")).toContain(name);
  });

  it.each([
    "99",
    "10001",
    "0",
    "-100",
    "1e3",
    "100.0",
    " 100",
    "+100",
    "0100",
    "",
    "null",
    "ten",
    "4294967396",
  ])("refuses a page_size of %j", (value) => {
    expect(problemsOf(read(`${SINCE}&page_size=${encodeURIComponent(value)}`))).toEqual([
      "page_size: must be an integer from 100 to 10000",
    ]);
  });

  it.each([
    "",
    "null",
    "yesterday",
    "2024-03-01",
    "2024-03-01T00:00:00",
    "2024-03-01T00:00:00z",
    "2024-03-01 00:00:00Z",
    "2024-03-01T00:00:00+00:00",
    "2024-03-01T00:00:00+00:00Z",
    "2024-02-30T00:00:00Z",
    "2023-02-29T00:00:00Z",
    "2024-13-01T00:00:00Z",
    "2024-03-01T24:00:01Z",
    "2024-03-01T00:60:00Z",
    "1709251200",
  ])("refuses a timestamp of %j", (value) => {
    expect(problemsOf(read(`created_since=${encodeURIComponent(value)}`))).toEqual([
      "created_since: must be an existing ISO 8601 UTC timestamp ending in Z",
    ]);
  });

  it.each([
    "2024-03-01T00:00:00+00:00",
    "2024-03-01T00:00:00.5+0000",
    "2024-03-01T00:00:00+00",
  ])("says what became of the raw + in %s", (value) => {
    expect(problemsOf(read(`created_since=${value}`))).toEqual([
      "created_since: must be an existing ISO 8601 UTC timestamp ending in Z; a raw + in a query is read as a blank: " +
        "write %2B, or Z instead of the offset",
    ]);
  });

  it("names everything that is wrong at once", () => {
    const problems = problemsOf(read("created_since=x&created_to=y&page_size=1&foo=1&bar=2&foo=3")).join(
      "; ",
    );
    for (const name of ["created_since:", "created_to:", "page_size:", "foo:", "bar:"]) {
      expect(problems).toContain(name);
    }
  });

  it("never throws, and names every unknown parameter", () => {
    const known = new Set([
      "created_since",
      "created_to",
      "updated_since",
      "updated_to",
      "page_size",
      "cursor",
    ]);
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.string({ minLength: 1 }), fc.string())), (pairs) => {
        const query = pairs
          .map(([name, value]) => `${encodeURIComponent(name)}=${encodeURIComponent(value)}`)
          .join("&");
        const problems = problemsOf(read(query));
        for (const [name] of pairs) {
          if (!known.has(name)) expect(problems).toContain(`${name}: unknown parameter`);
        }
      }),
    );
  });

  it("keeps every microsecond of the bounds", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 0, max: END_OF_TIME }),
        fc.integer({ min: 0, max: END_OF_TIME }),
        (since, to) => {
          const query = `created_since=${formatTimestampZ(since)}&created_to=${formatTimestampZ(to)}`;
          expect(requestOf(read(query))).toMatchObject({ since, to });
        },
      ),
    );
  });
});

describe("messages", () => {
  it("takes a conversation, also an id with odd characters", () => {
    const request = requestOf(readMessageParameters(`/x?${SINCE}&conversation_id=a%26b%20%C3%A9+c`));
    expect(request).toMatchObject({ filter: "created", conversationId: "a&b é c" });
    for (const value of ["", "null"]) {
      const absent = requestOf(readMessageParameters(`/x?${SINCE}&conversation_id=${value}`));
      expect(absent.conversationId).toBeUndefined();
    }
  });

  it("requires created_since and knows no updated window", () => {
    expect(problemsOf(readMessageParameters("/x"))).toEqual(["created_since: is required"]);
    expect(problemsOf(readMessageParameters("/x?updated_since=2024-03-01T00:00:00Z"))).toEqual([
      "updated_since: unknown parameter",
      "created_since: is required",
    ]);
  });
});

describe("the parameters of any operation", () => {
  const schema = z.object({
    limit: wholeNumber(1, 5, 3).optional(),
    name: z.string(),
    other: z.string().nullish(),
  });
  const readAny = (query: string) => readParameters(schema, `/x?${query}`);

  it("are the values of their schema, and only those that were given", () => {
    const { values, given, problems } = readAny("name=a%20b&limit=5&other=null");
    expect({ values, given: [...given].sort(), problems }).toEqual({
      values: { name: "a b", limit: 5 },
      given: ["limit", "name"],
      problems: [],
    });
  });

  it("take an empty value for absent where the schema takes null, and nowhere else", () => {
    expect(readAny("name=&other=").values).toEqual({ name: "" });
    expect(readAny("name=null").values).toEqual({ name: "null" });
    expect(readAny("name=x&limit=").problems).toEqual(["limit: must be an integer from 1 to 5"]);
  });

  it("name what is missing, unknown, repeated and wrong, and have no values then", () => {
    const { values, problems } = readAny("limit=6&limit=7&foo=1&Name=x");
    expect(values).toEqual({});
    expect(problems.sort()).toEqual([
      "Name: unknown parameter",
      "foo: unknown parameter",
      "limit: given more than once",
      "limit: must be an integer from 1 to 5",
      "name: is required",
    ]);
  });

  it.each([
    "__proto__",
    "constructor",
    "toString",
    "a[b]",
    "__proto__[x]",
    "constructor.prototype.x",
  ])("take %s for an unknown name and touch no prototype", (name) => {
    const { values, problems } = readAny(`name=x&${encodeURIComponent(name)}=polluted&${name}=polluted`);
    expect(problems).toEqual([`${name}: unknown parameter`]);
    expect(values).toEqual({});
    expect(({} as Record<string, unknown>)["x"]).toBeUndefined();
    expect(Object.prototype).not.toHaveProperty("polluted");
  });
});
