import { spawn } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { createDelivery } from "../system/deliver.ts";
import { seedOfRun } from "../system/size.ts";
import { startSystem } from "../system/system.ts";
import { until } from "../system/until.ts";
import { createSample } from "../sample/index.ts";
import { HOSTILE_TEXTS, hostileEvents } from "./hostile-texts.ts";
import { prepareTools } from "./tools.ts";

// Tests the running API against its OpenAPI document and reads it with other projects' clients.

const here = import.meta.dirname;
const CLIENT = "acme";
const PEER = "globex";
const HOSTILE = "initech";
const SCOPES = ["export", "end_users", "compliance", "campaigns"];
const CAMPAIGN = "order-shipped";

const CLIENTS = ["http-clients", "date-forms", "dlt-source", "generated-client", "singer-tap"];
/** Stops a script that pages without end; others take seconds. */
const CLIENT_DEADLINE_MS = 120_000;

const passes = async (
  command: string,
  args: readonly string[],
  options: { cwd: string; env?: Readonly<Record<string, string>>; timeout?: number },
): Promise<boolean> => {
  const started = performance.now();
  const child = spawn(command, args, {
    ...options,
    env: { ...process.env, ...options.env },
    stdio: ["ignore", "inherit", "inherit"],
  });
  const [code] = (await once(child, "exit")) as [number | null];
  console.log(
    `${code === 0 ? "ok" : "FAILED"} after ${((performance.now() - started) / 1_000).toFixed(0)} s`,
  );
  return code === 0;
};

const headersFor = (key: string) => ({ authorization: `Bearer ${key}`, "content-type": "application/json" });

const conversationIds = async (apiUrl: string, key: string): Promise<string> => {
  const address = `${apiUrl}/v2/export/conversations?created_since=2026-10-04T00:00:00Z&page_size=100`;
  const response = await fetch(address, { headers: headersFor(key) });
  const { data } = (await response.json()) as { data: { _id: string }[] };
  if (data.length === 0) throw new Error("the sample has not arrived");
  return data.map(({ _id }) => `${JSON.stringify(_id)}\n`).join("");
};

const requestId = async (apiUrl: string, key: string): Promise<string> => {
  const response = await fetch(`${apiUrl}/v2/data-subject-request`, {
    method: "POST",
    headers: headersFor(key),
    body: JSON.stringify({ type: "ERASURE", email: "jane@example.com" }),
  });
  return `"${response.headers.get("location")?.split("/").at(-1) ?? ""}"\n`;
};

const tools = await prepareTools();
const seed = seedOfRun("contract");
const system = await startSystem("contract");
try {
  const key = await system.key(CLIENT, SCOPES);
  const peerKey = await system.key(PEER, SCOPES);
  const hostileKey = await system.key(HOSTILE, SCOPES);
  await system.ops("campaigns", "create", CAMPAIGN, "--client", CLIENT);
  await system.service("ingest");
  await system.service("export-api", {
    RATE_LIMITS: "off",
    AUTH_FAILURE_LIMITS: "off",
    MAX_OPEN_DATA_SUBJECT_REQUESTS: "1000000",
    MAX_DATA_SUBJECT_IDENTIFIERS_PER_DAY: "100000000",
  });
  // No nonstandard values: lone surrogates, which JSON allows, stop the tool.
  const sample = createSample({ seed, conversations: 300, clients: [CLIENT, PEER], nonstandardShare: 0 });
  await createDelivery(system).send([...sample, ...hostileEvents(HOSTILE)]);
  await system.caughtUp(120_000);
  // Readers of changes get what jobs declared stable.
  await system.service("jobs");
  await until("changes are stable", 60_000, async () => {
    const changes = await fetch(`${system.apiUrl}/v2/export/changes/conversations`, {
      headers: headersFor(key),
    });
    return changes.ok;
  });

  const dictionary = (name: string, lines: string): void =>
    writeFileSync(join(system.logFolder, name), lines);
  dictionary("conversations.dict", await conversationIds(system.apiUrl, key));
  dictionary("requests.dict", await requestId(system.apiUrl, key));

  const authFile = join(system.logFolder, "auth.json");
  const user = (name: string, secret: string) => ({
    name,
    fixedHeaders: [{ name: "Authorization", value: `Bearer ${secret}` }],
  });
  writeFileSync(authFile, JSON.stringify({ auth: [user(CLIENT, key), user(PEER, peerKey)] }));

  const document = join(system.logFolder, "openapi.json");
  const response = await fetch(`${system.apiUrl}/openapi.json`);
  writeFileSync(document, await response.text());

  console.log("\n== spectral ==");
  const rules = join(here, "spectral.yaml");
  const spectral = fileURLToPath(import.meta.resolve("@stoplight/spectral-cli/dist/index.js"));
  const clean = await passes(
    process.execPath,
    [spectral, "lint", document, "--ruleset", rules, "--fail-severity", "warn"],
    { cwd: system.logFolder },
  );
  let clients = true;
  for (const name of CLIENTS) {
    console.log(`\n== ${name} ==`);
    const script = join(here, "clients", `${name}.py`);
    const read = await passes(join(tools.clients, "python"), [script, system.apiUrl], {
      cwd: system.logFolder,
      env: { API_KEY: key, PYTHONDONTWRITEBYTECODE: "1" },
      timeout: CLIENT_DEADLINE_MS,
    });
    clients &&= read;
  }
  console.log("\n== line-readers ==");
  const expected = join(system.logFolder, "hostile-texts.json");
  writeFileSync(expected, JSON.stringify(HOSTILE_TEXTS));
  const whole = await passes(
    join(tools.readers, "python"),
    [join(here, "clients/line-readers.py"), system.apiUrl],
    {
      cwd: system.logFolder,
      env: { API_KEY: hostileKey, EXPECTED: expected, NODE: process.execPath, PYTHONDONTWRITEBYTECODE: "1" },
      timeout: CLIENT_DEADLINE_MS,
    },
  );
  console.log("\n== schemathesis ==");
  const config = join(here, "schemathesis.toml");
  // From the file: given the document's URL, the tool skips the operation that serves it.
  const kept = await passes(
    tools.schemathesis,
    [
      "--config-file",
      config,
      "run",
      document,
      "--url",
      system.apiUrl,
      "--seed",
      seed,
      ...process.argv.slice(2),
    ],
    { cwd: system.logFolder, env: { AUTH_FILE: authFile } },
  );
  const good = clean && clients && whole && kept;
  console.log(`\ncontract: ${good ? "kept" : "BROKEN"} (repeat with TEST_SEED=${seed})`);
  if (!good) process.exitCode = 1;
} finally {
  await system.stop();
}
