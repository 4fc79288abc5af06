import { END_OF_TIME, formatTimestamp, formatTimestampZ, parseTimestamp } from "@conversation-export/domain";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { micros, problemsOf, requestOf } from "./page-request.fixture.ts";
import { LEGACY_WINDOWS, type PageRequestResult, WINDOWS } from "./window-parameters.ts";

const read = (query: string): PageRequestResult => WINDOWS.conversations.read(`/x?${query}`, 0);

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
    // Seven days long before the range hold nothing.
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
    [
      `${SINCE}&updated_since=2024-03-01T00:00:00Z`,
      "created_since, updated_since: created and updated filters exclude each other",
    ],
    [`${SINCE}&updated_to=2024-03-01T00:00:00Z`, "updated_to"],
    [`${SINCE}&conversation_id=x`, "conversation_id"],
    [`${SINCE}&created_since=2024-03-01T00:00:00Z`, "created_since"],
    [`${SINCE}&page_size=100&page_size=100`, "page_size"],
    [`${SINCE}&created_to=&created_to=`, "created_to"],
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
    "2024-03-01 00:00:00+00:00",
    "2024-03-01 00:00",
    "2024-03-01T00:00:00+00:00Z",
    "2024-03-01T00:00:00+24:00",
    "2024-03-01T00:00:00+00:60",
    "2024-02-30T00:00:00Z",
    "2023-02-29T00:00:00Z",
    "2024-13-01T00:00:00Z",
    "2024-03-01T24:00:01Z",
    "2024-03-01T00:60:00Z",
    "1709251200",
  ])("refuses a timestamp of %j", (value) => {
    expect(problemsOf(read(`created_since=${encodeURIComponent(value)}`))).toEqual([
      "created_since: must be an existing ISO 8601 timestamp with Z or an offset, such as 2026-10-01T00:00:00Z",
    ]);
  });

  it.each([
    ["2024-03-01T00:00:00.000001+00:00", "2024-03-01T00:00:00.000001Z"],
    ["2024-03-01T02:00:00+02:00", "2024-03-01T00:00:00.000000Z"],
    ["2024-02-29T18:30:00-0530", "2024-03-01T00:00:00.000000Z"],
    ["2024-03-01T00:00:00-00", "2024-03-01T00:00:00.000000Z"],
    ["9999-12-31T23:59:59+00:00", "2106-01-01T00:00:00.000000Z"],
    ["0000-01-01T00:00:00+01:00", "1970-01-01T00:00:00.000000Z"],
    ["2024-03-01T00:00:00.123456789Z", "2024-03-01T00:00:00.123456789Z"],
    ["2024-03-01T00:00Z", "2024-03-01T00:00Z"],
  ])("takes %s, and links have %s", (given, text) => {
    const value = encodeURIComponent(given);
    for (const [name, request] of [
      ["created", requestOf(read(`created_since=${value}&created_to=${value}`))],
      ["updated", requestOf(read(`updated_since=${value}&updated_to=${value}`))],
      ["created", requestOf(WINDOWS.messages.read(`/x?created_since=${value}&created_to=${value}`))],
    ] as const) {
      const instant = Math.min(micros(text), END_OF_TIME);
      expect(request).toMatchObject({ filter: name, since: instant, to: instant });
      expect([request.sinceText, request.toText]).toEqual([text, text]);
    }
  });

  it("takes every instant back as it left, in a record or in a link", () => {
    const instant = fc.integer({ min: 0, max: END_OF_TIME });
    fc.assert(
      fc.property(instant, instant, (since, to) => {
        const query = `created_since=${encodeURIComponent(formatTimestamp(since))}&created_to=${formatTimestampZ(to)}`;
        expect(requestOf(read(query))).toMatchObject({ since, sinceText: formatTimestampZ(since), to });
      }),
    );
  });

  it.each([
    "2024-03-01T00:00:00+00:00",
    "2024-03-01T00:00:00.5+0000",
    "2024-03-01T00:00:00+00",
  ])("says what became of the raw + in %s", (value) => {
    expect(problemsOf(read(`created_since=${value}`))).toEqual([
      "created_since: must be an existing ISO 8601 timestamp with Z or an offset, such as 2026-10-01T00:00:00Z; " +
        "a raw + in a query is read as a blank: write %2B instead, or the time in UTC with Z",
    ]);
    const followed = requestOf(read(`created_since=${value.replace("+", "%2B")}`));
    expect(followed.since).toBe(micros(value));
  });

  it.each([
    "2024-03-01 00:00",
    "2024-03-01 12",
    "2024-02-30T00:00:00+00:00",
    "2024-03-01T00:00:00+24:00",
  ])("says nothing of a raw + when %s would be wrong with one too", (value) => {
    expect(problemsOf(read(`created_since=${value}`)).join()).not.toContain("%2B");
  });

  // Without seconds, with a comma, with a shorter offset.
  const SHORTER = new RegExp(
    [
      "^\\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\\d|3[01])",
      "T([01]\\d|2[0-3]):[0-5]\\d(:[0-5]\\d([.,]\\d{1,9})?)?",
      "(Z|[+-]([01]\\d|2[0-3])(:?[0-5]\\d)?)$",
    ].join(""),
  );
  it.each([
    ["v2", "and shorter forms", SHORTER, WINDOWS.conversations.query, read],
    [
      "legacy",
      "and nothing else",
      null,
      LEGACY_WINDOWS.conversations.query,
      (query: string) => LEGACY_WINDOWS.conversations.read(`/x?${query}`, 0),
    ],
  ] as const)("%s: takes what the pattern in the reference allows, %s", (_, __, more, schema, read) => {
    type Shown = { pattern: string; format?: string };
    const { properties } = z.toJSONSchema(schema, {
      io: "input",
      unrepresentable: "any",
      override: ({ zodSchema, jsonSchema }) => {
        const given = z.globalRegistry.get(zodSchema)?.["override"];
        if (typeof given === "function") (given as (shown: object) => void)({ jsonSchema });
        else Object.assign(jsonSchema, given);
      },
    });
    const shown = properties as unknown as Record<"created_since" | "created_to", Shown>;
    expect(shown.created_to.format).toBe(shown.created_since.format);
    const accepts = (query: string): boolean => "request" in read(query);
    const lower = new RegExp(shown.created_since.pattern);
    const upper = new RegExp(shown.created_to.pattern);
    const taken = more ?? lower;
    for (const year of ["0000", "1900", "2000", "2023", "2024"])
      for (let at = 0; at < 12 * 31; at += 1) {
        const [month, day] = [Math.floor(at / 31) + 1, (at % 31) + 1].map((n) => String(n).padStart(2, "0"));
        const text = `${year}-${month}-${day}T00:00:00Z`;
        expect(lower.test(text), text).toBe(parseTimestamp(text) !== undefined);
      }
    const isAbsent = (text: string): boolean => upper.test(text) && !lower.test(text);
    const piece = fc.constantFrom("0", "9", "31", "-", ":", "T", "Z", "z", "+", ".", ",", " ", "null", "");
    const near = fc
      .tuple(fc.stringMatching(taken), fc.nat(), fc.nat({ max: 2 }), piece)
      .map(([text, place, cut, put]) => {
        const at = place % (text.length + 1);
        return text.slice(0, at) + put + text.slice(at + cut);
      });
    const texts = fc.oneof(
      fc.stringMatching(lower),
      fc.stringMatching(taken),
      near,
      fc.constantFrom("", "null"),
      fc.string(),
    );
    fc.assert(
      fc.property(texts, (text) => {
        const value = encodeURIComponent(text);
        const exists = parseTimestamp(text) !== undefined;
        const isInstant = taken.test(text) && exists;
        if (lower.test(text)) expect(isInstant, text).toBe(true);
        expect(accepts(`created_since=${value}`), text).toBe(isInstant);
        expect(accepts(`${SINCE}&created_to=${value}`), text).toBe(isInstant || isAbsent(text));
      }),
    );
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
});

describe("messages", () => {
  it("takes a conversation, also an id with odd characters", () => {
    const request = requestOf(WINDOWS.messages.read(`/x?${SINCE}&conversation_id=a%26b%20%C3%A9+c`));
    expect(request).toMatchObject({ filter: "created", conversationId: "a&b é c" });
    for (const value of ["", "null"]) {
      const absent = requestOf(WINDOWS.messages.read(`/x?${SINCE}&conversation_id=${value}`));
      expect(absent.conversationId).toBeUndefined();
    }
  });

  it("requires created_since and knows no updated window", () => {
    expect(problemsOf(WINDOWS.messages.read("/x"))).toEqual(["created_since: is required"]);
    expect(problemsOf(WINDOWS.messages.read("/x?updated_since=2024-03-01T00:00:00Z"))).toEqual([
      "updated_since: unknown parameter",
      "created_since: is required",
    ]);
  });
});
