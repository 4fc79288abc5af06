import { mkdtempSync, rmSync } from "node:fs";
import { createServer, type ServerResponse } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import {
  createAirbyte,
  createDlt,
  ID_OF,
  type List,
  LISTS,
  prepareConnectors,
} from "../outside/connectors.ts";
import { type Listening, listen } from "../system/listen.ts";

/** The service's clock is ahead of this machine's. */
const AHEAD_MS = 600_000;

let root: string;
let url: string;
let listening: Listening;
let asked: URL[];
let keys: Set<string | undefined>;
let answer: (list: List, response: ServerResponse) => void;
const server = createServer((request, response) => {
  const address = new URL(request.url ?? "", url);
  asked.push(address);
  keys.add(request.headers.authorization);
  response.setHeader("content-type", "application/json");
  answer(address.pathname.split("/").at(-1) as List, response);
});

beforeEach(async () => {
  root = mkdtempSync(join(tmpdir(), "connectors-"));
  asked = [];
  keys = new Set();
  listening = await listen(server);
  url = `http://127.0.0.1:${listening.port}/api`;
  answer = (list, response) => {
    const since = `${new Date(Date.now() + AHEAD_MS).toISOString().slice(0, -1)}000Z`;
    const meta = { next_cursor: "c", next_stored_since: since, end_of_stream: true };
    response.end(JSON.stringify({ data: [{ [ID_OF[list]]: `r${asked.length}` }], meta }));
  };
});
afterEach(async () => {
  await listening.close();
  rmSync(root, { recursive: true });
});

const options = (apiUrl: string, key = "k") => ({ apiUrl, key, pageSize: 10 });
const line = (text: string): string => `${text} \n`;

it("the source for Airbyte reads on when the clock is behind that of the service", async () => {
  const place = await prepareConnectors();
  const airbyte = createAirbyte(place(root), options(url));
  expect(await airbyte.read("incremental")).toHaveLength(LISTS.length);
  const before = asked.length;
  expect(await airbyte.read("incremental")).toHaveLength(LISTS.length);
  for (const address of asked.slice(before))
    expect(Date.parse(address.searchParams.get("stored_since") ?? "")).toBeGreaterThan(Date.now());
});

it("the source for Airbyte takes an address with a slash at its end, and blanks behind address and key", async () => {
  const place = await prepareConnectors();
  const given = options(line(`${url}/`), line("k"));
  expect(await createAirbyte(place(root), given).check()).toBe("SUCCEEDED");
  expect(keys).toEqual(new Set(["Bearer k"]));
  expect(asked.map(({ pathname }) => pathname)).toContain("/api/v2/export/changes/conversations");
});

it("the source for dlt takes an address with a slash at its end, and shows what the service says", async () => {
  const place = await prepareConnectors();
  await createDlt(place(root), options(line(`${url}/`), line("k"))).load();
  expect(keys).toEqual(new Set(["Bearer k"]));
  expect(asked.map(({ pathname }) => pathname).toSorted()).toEqual(
    LISTS.map((list) => `/api/v2/export/changes/${list}`).toSorted(),
  );
  const dlt = createDlt(place(join(root, "refused")), options(url));
  answer = (_, response) => {
    const details = "the address ends with \u001b[31m/api";
    response.statusCode = 404;
    response.end(
      JSON.stringify({ errors: [{ type: "resource_not_found", message: "No such path", details }] }),
    );
  };
  await expect(dlt.load()).rejects.toMatchObject({
    stderr: expect.stringContaining("No such path (the address ends with ?[31m/api)"),
  });
  answer = (_, response) => {
    response.statusCode = 404;
    response.end("<html>");
  };
  await expect(dlt.load()).rejects.toMatchObject({
    stderr: expect.stringContaining("not an answer of the export API"),
  });
  for (const page of ["<html>", "[]", '{"data":[]}']) {
    answer = (_, response) => response.end(page);
    await expect(dlt.load(), page).rejects.toMatchObject({
      stderr: expect.stringContaining("not an answer of the export API"),
    });
  }
});
