import { execFile, execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { choosePorts } from "@conversation-export/local-stack";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { blocksOf, runCommands } from "../documents/guide-commands.ts";
import { findBrowser, startBrowser } from "../outside/browser.ts";
import { preparePythonTools } from "../outside/python-tools.ts";
import { handMade } from "../sample/hand-made.ts";
import { createDelivery } from "../system/deliver.ts";
import { readTopics } from "../system/read-topics.ts";
import { readMetric } from "../system/metrics-text.ts";
import { NO_SCHEDULES } from "../system/no-schedules.ts";
import type { ServiceProcess } from "../system/service-process.ts";
import { startSystem, type System } from "../system/system.ts";
import { until } from "../system/until.ts";

const PAGE = "events.md";
const HEADING = "Publish one event";
const CLIENT = "demo-client";
const run = promisify(execFile);

const isInstalled = (program: string, page: string): boolean => {
  try {
    execFileSync("sh", ["-c", `command -v ${program}`], { stdio: "ignore" });
    return true;
  } catch {
    console.log(`!!! ${program} is not on the PATH: its example in docs/${page} is not tried`);
    return false;
  }
};
const hasKcat = isInstalled("kcat", PAGE);
const hasJq = isInstalled("jq", "pages-and-windows.md");

const browserPath = findBrowser("the reference page and the board are not opened in a browser");

let system: System;
let ingest: ServiceProcess;
let key: string;
let python: string;

beforeAll(async () => {
  [system, python] = await Promise.all([startSystem("test-quick-starts"), preparePythonTools("publishers")]);
  key = await system.key(CLIENT, ["export", "end_users", "compliance", "campaigns"]);
  [ingest] = await Promise.all([
    system.service("ingest", { BATCH_MAX_AGE_MS: "100" }),
    system.service("export-api"),
  ]);
});
afterAll(async () => {
  await system?.stop();
});

const brokers = () => ({ KAFKA_BROKERS: system.stack.kafka.brokers.join(",") });
const fileOf = (language: string, name: string, page = PAGE, heading = HEADING): string => {
  const [block = ""] = blocksOf(page, heading, language);
  const file = join(system.logFolder, name);
  writeFileSync(file, block);
  return file;
};

const untilReadable = (id: string, since = new Date(Date.now() - 3_600_000).toISOString()): Promise<void> =>
  until(`${id} is readable`, 20_000, async () => {
    const answer = await fetch(`${system.apiUrl}/v2/export/conversations?created_since=${since}`, {
      headers: { authorization: `Bearer ${key}` },
    });
    // Repeats after a 503 of a busy machine, which has no data.
    const { data = [] } = (await answer.json()) as { data?: { _id: string }[] };
    return data.some(({ _id }) => _id === id);
  });

describe("an event is published as docs/events.md says", () => {
  it.skipIf(!hasKcat)("with kcat", async () => {
    await runCommands(brokers(), ...blocksOf(PAGE, HEADING));
    await untilReadable("by-kcat");
  });

  it("with Python", async () => {
    await run(join(python, "python"), ["docs/examples/publish.py"], { env: brokers() });
    await untilReadable("by-python");
  });
});

it("the first request of docs/quick-start.md, and of README.md, answers with the conversation published there", async () => {
  const [, publish = ""] = blocksOf("quick-start.md", "On Linux");
  const [read = ""] = blocksOf("quick-start.md", "Read it");
  expect(blocksOf("../README.md", "A first request")).toEqual([publish, read]);
  const env = { ...brokers(), EXPORT_API_URL: system.apiUrl, EXPORT_API_KEY: key };
  await runCommands(env, publish);
  await until("the conversation is read", 20_000, async () =>
    (await runCommands(env, read)).includes('"_id":"first-conversation"'),
  );
});

describe("a reader's request is answered as written in", () => {
  beforeAll(async () => {
    await system.ops("campaigns", "create", "welcome", "--client", CLIENT);
    await system.another("jobs", NO_SCHEDULES);
  });

  it.each<[string, string, RegExp, string?]>([
    ["reading.md", "First request", /^HTTP\/1.1 200 [^]*"meta":\{"next_page_uri":null\}\}$/],
    [
      "streams-and-parquet.md",
      "Lines",
      /^\{"trailer":\{"count":\d+,"watermark":.*\}\}$/,
      "tail -n 1 messages.ndjson",
    ],
    ["streams-and-parquet.md", "Parquet", /^PAR1$/, "head -c 4 conversations.parquet"],
    [
      "erasure-and-sms.md",
      "Erase a person",
      /location: \/api\/v2\/data-subject-request\/[^]*\{"email":"ann@example.com"\}$/i,
    ],
    ["erasure-and-sms.md", "Trigger an SMS", /^\{"id":"[^"]+"\}$/],
  ])("docs/%s, %s", async (page, heading, answer, show = "") => {
    const env = { EXPORT_API_URL: system.apiUrl, EXPORT_API_KEY: key };
    const requests = blocksOf(page, heading).filter((block) => block.startsWith("curl"));
    expect(requests).toHaveLength(1);
    const printed = await runCommands(env, `cd '${system.logFolder}'`, ...requests, show);
    expect(printed.trim()).toMatch(answer);
  });

  it.skipIf(!hasJq)("docs/pages-and-windows.md, whose loop follows the links", async () => {
    const env = { EXPORT_API_URL: system.apiUrl, EXPORT_API_KEY: key };
    const [loop = ""] = blocksOf("pages-and-windows.md", "Conversations and messages");
    const printed = await runCommands(
      env,
      `cd '${system.logFolder}'`,
      loop.replaceAll(/_(since|to)=[^&"]+/g, (bound) =>
        bound.startsWith("_to") ? "_to=2100-01-01T00:00:00Z" : "_since=2026-01-01T00:00:00Z",
      ),
      "jq -r ._id conversations.ndjson",
    );
    expect(printed.split("\n")).toContain("first-conversation");
  });

  it("docs/change-feed.md, whose script keeps a copy", async () => {
    const delivery = createDelivery(system);
    const send = (text: string): Promise<unknown> => {
      const now = new Date().toISOString();
      const data = { _id: "copied", conversation_id: "c", date_created: now, sender: text };
      return delivery.send([handMade({ kind: "message", client: CLIENT, id: data._id, time: now, data })]);
    };
    const script = fileOf("python", "copy.py", "change-feed.md", "A script that keeps a copy");
    const env = { EXPORT_API_URL: system.apiUrl, EXPORT_API_KEY: key };
    const cwd = system.logFolder;
    const show =
      "import sqlite3; print(sqlite3.connect('messages.db').execute('SELECT * FROM messages').fetchall())";
    for (const text of ["before", "after"]) {
      await send(text);
      await until(`the copy has ${text}`, 60_000, async () => {
        // Fails until the feed has begun.
        await run(join(python, "python"), [script], { env, cwd }).catch(() => undefined);
        const { stdout } = await run(join(python, "python"), ["-c", show], { cwd });
        return stdout.startsWith("[('copied', ") && stdout.includes(`"${text}"`);
      });
    }
  });
});

it.each(["Keep a copy", "Standard output"])("docs/client.md, %s, runs as it stands", async (heading) => {
  const [block = ""] = blocksOf("client.md", heading);
  const commands = block.replace(/^export .*\n/, "");
  const env = { EXPORT_API_URL: system.apiUrl, EXPORT_API_KEY: key };
  const found = 'npx() { shift; conversation-export-client "$@"; }; load-messages() { cat; }';
  const printed = await runCommands(env, `cd '${system.logFolder}'`, found, commands);
  expect(printed).toMatch(heading === "Keep a copy" ? /messages: equal, \d+ records/ : /^\{"_id":"copied"/m);
});

it("an event behind the id of a schema is read and kept without it, a refused one with it", async () => {
  const idOfSchema = Buffer.from([0, 0, 0, 1, 200]);
  const event = (id: string, type: string): string => {
    const now = new Date().toISOString();
    const data = { _id: id, date_created: now };
    return JSON.stringify({ specversion: "1.0", id, source: "s", type, time: now, clientid: CLIENT, data });
  };
  const good = event("behind-an-id", "conversation.exported");
  const values = [good, event("refused", "message.exported")].map((text) =>
    Buffer.concat([idOfSchema, Buffer.from(text)]),
  );
  await system.producer.send(
    "conversations",
    values.map((value) => ({ key: Buffer.from("k"), value, headers: {} })),
  );
  await untilReadable("behind-an-id");
  const [deadLetter] = await readTopics(system.connection, ["conversations.dead-letter"], 1);
  expect(deadLetter?.value).toEqual(values[1]);
  expect(deadLetter?.headers["dl-reason"]?.toString()).toBe("unexpected_type");
  const landed = await system.sql(
    "SELECT payload FROM landing WHERE record_id = 'behind-an-id' FORMAT TSVRaw",
  );
  expect(landed).toBe(good);
  expect(await readMetric(ingest.metricsUrl, "conversation_export_ingest_schema_prefixes_total")).toBe(2);
});

describe("the reference in a browser", () => {
  it.skipIf(browserPath === undefined)(
    "shows a whole record, and answers a request that is tried",
    async () => {
      const now = new Date().toISOString();
      const data = { _id: "tried-in-a-browser", date_created: "2026-10-02T00:00:00Z" };
      await createDelivery(system).send([
        handMade({ kind: "conversation", client: CLIENT, id: data._id, time: now, data }),
      ]);
      await untilReadable(data._id, "2026-10-01T00:00:00Z");
      const browser = await startBrowser(browserPath ?? "");
      try {
        const page = await browser.newPage();
        const troubles: string[] = [];
        page.on("pageerror", ({ message }) => troubles.push(message));
        page.on("request", (request) => {
          if (!request.url().startsWith(new URL(system.apiUrl).origin)) troubles.push(request.url());
        });
        await page.goto(`${system.apiUrl}/reference`);
        await page.getByLabel("Bearer Token").first().fill(key);
        // A topic of the conversation in docs/examples/events.
        await page.getByText('"Late refunds"').first().waitFor();
        await page.getByRole("button", { name: /Test Request.*get \/v2\/export\/conversations/ }).click();
        const client = page.getByRole("dialog");
        await client.getByRole("button", { name: /^Send/ }).first().click();
        await client.getByText("200 OK").waitFor();
        await client.getByText(`"${data._id}"`).waitFor();
        expect(troubles).toEqual([]);
      } finally {
        await browser.close();
      }
    },
  );
});

it.skipIf(browserPath === undefined)(
  "the board asks no other host, and shows a worker of each queue",
  async () => {
    const { board } = await choosePorts({ names: ["board"], fixed: {} });
    const password = "correct horse battery";
    await system.service("jobs", { BOARD_PASSWORD: password, BOARD_PORT: String(board) });
    const origin = `http://127.0.0.1:${board}`;
    const browser = await startBrowser(browserPath ?? "");
    try {
      const context = await browser.newContext({ httpCredentials: { username: "operator", password } });
      const page = await context.newPage();
      const troubles: string[] = [];
      page.on("pageerror", ({ message }) => troubles.push(message));
      page.on("console", (message) => {
        if (message.type() === "error") troubles.push(message.text());
      });
      await page.route(
        (url) => url.origin !== origin,
        (route) => {
          troubles.push(route.request().url());
          return route.abort();
        },
      );
      await page.goto(`${origin}/board`);
      await page.getByText("backfill-part").first().waitFor();
      await page.getByText("compact").first().waitFor();
      // A queue's page loads its scripts separately.
      await page.getByText("erasure").first().click();
      await page.waitForURL(/\/queue\/erasure/);
      await page.waitForLoadState("networkidle");
      expect(await page.getByText("No workers").count()).toBe(0);
      expect(troubles).toEqual([]);
    } finally {
      await browser.close();
    }
  },
);
