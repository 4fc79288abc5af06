import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { type Answer, error, json, LINES, raw } from "../http/test-server.fixture.ts";
import { LIST, usePlace } from "./command.fixture.ts";
import { beginFirstPass } from "./service.fixture.ts";

const place = usePlace();
const HOSTILE = "\u001b]0;owned\u0007\u001b[31m\u009b2J\r\u202e\u2066\u2028\u200b";
const SECRET = "what users wrote";
const IN_HEADER = "\u009b31m";

const expectPlain = (text: string): void => {
  expect(text).toMatch(/^[\x20-\x7e…\n]*$/);
  expect(text).not.toContain(SECRET);
};
const pull = (to: string, ...args: string[]) => place.command(["pull", "--to", to, ...LIST, ...args]);

const empty = (watermark: string): Answer =>
  json({ data: [], meta: { next_cursor: "2", end_of_stream: true } }, { "x-export-watermark": watermark });
const first = `{"_id":"a","date_created":"2026-10-04T00:00:00.000000+00:00"}\n`;
const trailer = `{"trailer":{"count":2,"watermark":null}}\n`;

it.each<[string, readonly Answer[], string]>([
  [
    "an error",
    [error(400, "bad_request", { "x-request-id": IN_HEADER }, HOSTILE)],
    "400: no (\\u001b]0;owned",
  ],
  [
    "an error of another shape",
    [raw(400, "application/json", `{"errors":[{"message":{"a":"${SECRET}"}}]}`)],
    "400: another server",
  ],
  ["a list as an error", [raw(400, "application/json", `[null]`)], "400: another server"],
  [
    "the page of a proxy",
    [raw(404, "text/html", `<html>${HOSTILE}${SECRET}`)],
    "404: another server answered, with ",
  ],
  [
    "a type that is none",
    [raw(404, `text/${IN_HEADER}`, SECRET)],
    "404: another server answered, with 16 characters of text/",
  ],
  [
    "an answer that is no JSON",
    [raw(200, "application/json", `${SECRET}${HOSTILE}`)],
    "the answer is not JSON, but ",
  ],
  [
    "a redirect",
    [raw(302, "text/html", "", { location: `/${IN_HEADER}` })],
    "the service redirects to /\\u009b31m",
  ],
  [
    "an answer of another type",
    [...beginFirstPass(), raw(200, `text/${IN_HEADER}`, SECRET)],
    "not application/x-ndjson",
  ],
  ["a watermark that is none", [empty(IN_HEADER)], "X-Export-Watermark is no instant"],
  [
    "a line that is no JSON",
    [...beginFirstPass(), raw(200, LINES, `${SECRET}${HOSTILE}\n${trailer}`)],
    " characters is not JSON",
  ],
  [
    "a line without id",
    [...beginFirstPass(), raw(200, LINES, `{"text":"${SECRET}"}\n${trailer}`)],
    "has no _id or date_created",
  ],
  [
    "a trailer that is no JSON",
    [...beginFirstPass(), raw(200, LINES, `${first}{"trailer":${SECRET}\n`)],
    "the trailer, of ",
  ],
])("%s shows what it is, and no record", async (_, answers, said) => {
  for (const args of [[], ["--json"]]) {
    place.service.next(...answers);
    const { code, out, err } = await pull(join(place.root, `copy${args.length}`), ...args);
    expect(code).toBe(3);
    expect(out).toBe("");
    expectPlain(err);
    expect(args.length === 0 ? err : (JSON.parse(err) as { error: string }).error).toContain(said);
  }
});

it("watermarks and ids show what is in them, also to verify", async () => {
  const id = `${HOSTILE}${"x".repeat(400)}`;
  place.service.put(id, 1);
  place.service.moveOn();
  const copy = join(place.root, "copy");
  await pull(copy);
  const file = join(copy, "conversations/00000001.ndjson");
  writeFileSync(file, readFileSync(file, "utf8").replace('"csat":1', '"csat":2'));
  const { code, out } = await place.command(["verify", "--to", copy, ...LIST]);
  expect(code).toBe(5);
  expectPlain(out);
  expect(out).toContain(`… (${id.length} characters)`);
  const { out: inJson } = await place.command(["verify", "--to", copy, ...LIST, "--json"]);
  expectPlain(inJson);
  expect(JSON.parse(inJson)).toMatchObject({ verified: { examples: [id] } });
  place.service.next(empty(IN_HEADER));
  const reported = await pull(copy);
  expectPlain(reported.out);
  expect(reported).toMatchObject({ code: 0, out: expect.stringContaining("complete up to \\u009b31m") });
});

it.each([
  ["no JSON", `{"_id":"a", ${SECRET}`],
  ["another escape", `{"_id":"a\\x${SECRET}"}`],
  ["another shape", `["${SECRET}"]`],
])("a line of a copy that is %s is named by its place and length", async (_, line) => {
  place.service.put("a", 1);
  const copy = join(place.root, "copy");
  await pull(copy);
  writeFileSync(join(copy, "conversations/00000001.ndjson"), `{"_id":"a","csat":1}\n${line}\n`);
  const { code, err } = await place.command(["verify", "--to", copy, ...LIST]);
  expect(code).toBe(6);
  expectPlain(err);
  expect(err).toMatch(/line 2.*, of \d+ characters, (is no record|has no id)\n$/);
});

it("a record of the service that is no JSON is not quoted by verify", async () => {
  place.service.put("a", 1);
  const copy = join(place.root, "copy");
  await pull(copy);
  place.service.next(raw(200, LINES, `{"_id":"a" ${SECRET}\n${first}${trailer}`));
  const { code, err } = await place.command(["verify", "--to", copy, ...LIST]);
  expect(code).toBe(3);
  expectPlain(err);
});

describe("arguments and states", () => {
  it("show what is in them", async () => {
    const { err } = await place.command(["pull", "--to", "x", "--list", HOSTILE]);
    expectPlain(err);
    const copy = join(place.root, "copy");
    await pull(copy);
    const state = join(copy, "state.json");
    const text = readFileSync(state, "utf8").replace(
      place.service.url,
      HOSTILE.replace(/./gsu, (one) => JSON.stringify(one).slice(1, -1)),
    );
    writeFileSync(state, text);
    const reported = await pull(copy);
    expect(reported.code).toBe(2);
    expectPlain(reported.err);
  });
});
