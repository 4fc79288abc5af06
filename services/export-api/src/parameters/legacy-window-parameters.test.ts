import { END_OF_TIME } from "@conversation-export/domain";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { CLIENT } from "../http/app.fixture.ts";
import { createPageLinks } from "../envelopes/page-link.ts";
import { micros, problemsOf, requestOf } from "./page-request.fixture.ts";
import { LEGACY_WINDOWS, type PageRequestResult } from "./window-parameters.ts";

const NOW = micros("2024-03-10T12:00:00.123Z");
const conversations = (query: string): PageRequestResult =>
  LEGACY_WINDOWS.conversations.read(`/x?${query}`, NOW);
const messages = (query: string): PageRequestResult => LEGACY_WINDOWS.messages.read(`/x?${query}`);

const SINCE = "created_since=2024-03-01T00%3A00%3A00";
const WANTED =
  "must be an existing ISO 8601 timestamp, in UTC when it has no offset, such as 2026-10-01T00:00:00.000000";

describe("timestamps", () => {
  it.each([
    ["2023-06-28T17:59:28", "2023-06-28T17:59:28Z"],
    ["2023-06-28T17:59", "2023-06-28T17:59:00Z"],
    ["2023-06-28T17:59:28.201000", "2023-06-28T17:59:28.201Z"],
    ["2023-06-28T17:59:28.2", "2023-06-28T17:59:28.2Z"],
    ["2023-06-28T17:59:28.123456Z", "2023-06-28T17:59:28.123456Z"],
    ["2023-06-28T17:59:28.000001+00:00", "2023-06-28T17:59:28.000001Z"],
    ["2023-06-28T19:59:28+0200", "2023-06-28T17:59:28Z"],
  ])("take %s for %s", (text, meant) => {
    for (const read of [conversations, messages]) {
      const query = `created_since=${encodeURIComponent(text)}&created_to=${encodeURIComponent(text)}`;
      expect(requestOf(read(query))).toMatchObject({
        since: micros(meant),
        to: micros(meant),
        sinceText: text,
        toText: text,
      });
    }
  });

  it("need no encoding of their colons", () => {
    expect(requestOf(messages("created_since=2023-06-28T17:59:28.201000")).since).toBe(
      micros("2023-06-28T17:59:28.201Z"),
    );
  });

  it.each([
    "",
    "null",
    "yesterday",
    "2024-03-01",
    "2024-03-01 00:00:00",
    "2024-03-01 00:00:00Z",
    "2023-02-29T00:00:00",
    "2024-03-01T24:00:00",
    "2024-03-01T00:00:00.",
    "2024-03-01T00:00:00+24:00",
    "1709251200",
  ])("are refused as %j", (text) => {
    expect(problemsOf(messages(`created_since=${encodeURIComponent(text)}`))).toEqual([
      `created_since: ${WANTED}`,
    ]);
  });

  it.each(["+00:00", "+0000", "+00"])("with a raw %s are refused with a hint", (offset) => {
    const [problem] = problemsOf(messages(`created_since=2024-03-01T00:00:00.201000${offset}`));
    expect(problem).toContain(`created_since: ${WANTED}`);
    expect(problem).toContain("%2B");
  });
});

describe("conversations", () => {
  it("mean the last 7 days and 10,000 records without any parameter", () => {
    for (const query of ["", "created_to=&updated_to=null&cursor="]) {
      expect(requestOf(conversations(query))).toEqual({
        filter: "created",
        since: micros("2024-03-03T12:00:00.123Z"),
        to: NOW,
        sinceText: "2024-03-03T12:00:00.123000",
        toText: "2024-03-10T12:00:00.123000",
        pageSize: 10_000,
        pageSizeGiven: false,
        conversationId: undefined,
        cursor: undefined,
      });
    }
  });

  it.each(["created", "updated"] as const)("take a window of %s, a week long by default", (filter) => {
    const since = `${filter}_since=2024-03-01T00:00:00`;
    expect(requestOf(conversations(since))).toMatchObject({
      filter,
      since: micros("2024-03-01T00:00:00Z"),
      to: micros("2024-03-08T00:00:00Z"),
      toText: undefined,
    });
    expect(requestOf(conversations(`${since}&${filter}_to=2024-04-01T00:00:00Z&page_size=1`))).toMatchObject({
      filter,
      to: micros("2024-04-01T00:00:00Z"),
      pageSize: 1,
      pageSizeGiven: true,
    });
  });

  it.each([
    ["created_to=2024-03-01T00:00:00", "created_to: needs created_since"],
    ["updated_to=2024-03-01T00:00:00", "updated_to: needs updated_since"],
    ["page_size=0", "page_size: must be an integer from 1 to 10000"],
    ["page_size=10001", "page_size: must be an integer from 1 to 10000"],
  ])("are refused for %s", (query, problem) => {
    expect(problemsOf(conversations(query))).toContain(problem);
  });
});

describe("the timestamps of links", () => {
  const links = createPageLinks({ secret: "x".repeat(32), linkBounds: "same", form: "legacy" });
  const linkTo = (to: number, sinceText: string): string => {
    const request = {
      ...requestOf(messages(SINCE)),
      since: -1,
      to,
      sinceText,
      toText: undefined,
    };
    const next = { date: 0, id: "m1" };
    return links.next(CLIENT, "legacy", request, { next }) ?? "";
  };

  it.each([
    ["2023-06-28T17:59:28.201000", "2024-03-10T12:00:00.123000"],
    ["2023-06-28T17:59", "2024-03-10T12:00:00.123000"],
    ["2023-06-28T17:59:28Z", "2024-03-10T12:00:00.123000Z"],
    ["2023-06-28T17:59:28.1+00:00", "2024-03-10T12:00:00.123000+00:00"],
    ["2023-06-28T17:59:28-0200", "2024-03-10T12:00:00.123000+00:00"],
  ])("look like %s", (given, expected) => {
    expect(new URLSearchParams(linkTo(NOW, given)).get("created_to")).toBe(expected);
  });

  it("are written so that any of them is read back as the same instant", () => {
    const given = fc.constantFrom("2023-06-28T17:59:28", "2023-06-28T17:59:28Z", "2023-06-28T17:59:28+02:00");
    fc.assert(
      fc.property(fc.integer({ min: 0, max: END_OF_TIME }), given, (instant, like) => {
        const query = linkTo(instant, like);
        expect(query).not.toMatch(/[:+ ]/);
        expect(requestOf(messages(query)).to).toBe(instant);
      }),
    );
  });
});
