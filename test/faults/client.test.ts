import { existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { zstdDecompressSync } from "node:zlib";
import { createClient } from "@conversation-export/client";
import { afterAll, beforeAll, expect, it } from "vitest";
import { walk } from "../compare/walk.ts";
import { createSample } from "../sample/index.ts";
import { createRestless, personOf } from "../sample/restless.ts";
import { createRandom, type Random } from "../sample/values/random.ts";
import { changesStable } from "../system/changes-stable.ts";
import { type Ended, killClientCommands, startClientCommand } from "../system/client-command.ts";
import { createDelivery, type Delivery } from "../system/deliver.ts";
import { NO_SCHEDULES } from "../system/no-schedules.ts";
import { bySize, seedOfRun } from "../system/size.ts";
import { startSystem, type System } from "../system/system.ts";
import { until } from "../system/until.ts";

const CLIENT = "acme";
const LISTS = ["conversations", "messages", "end_users"] as const;
const SAMPLE = bySize(1_500, 20_000);
const KILLS = bySize(6, 100);
const DEADLINE_MS = bySize(60_000, 600_000);

const INGEST = { BATCH_MAX_RECORDS: "200", BATCH_MAX_AGE_MS: "300", WATERMARK_INTERVAL_MS: "500" };

let system: System;
let seed: string;
let random: Random;
let delivery: Delivery;
let key: string;
let folder: string;
let database: string;

beforeAll(async () => {
  seed = seedOfRun("client");
  random = createRandom(seed, "kills");
  system = await startSystem("test-client");
  folder = join(system.logFolder, "export");
  database = `duckdb:${join(system.logFolder, "export.duckdb")}`;
  key = await system.key(CLIENT, ["export", "end_users", "compliance"]);
  delivery = createDelivery(system);
  await Promise.all([
    system.service("ingest", INGEST),
    system.service("export-api"),
    system.service("jobs", NO_SCHEDULES),
  ]);
  const sample = { seed, conversations: SAMPLE, messagesPerConversation: 3, endUsers: 200, poisonShare: 0 };
  await delivery.send(createSample({ ...sample, clients: [CLIENT] }));
  await system.caughtUp(DEADLINE_MS);
  const client = createClient({ baseUrl: system.apiUrl, apiKey: key });
  await until("there is a watermark", DEADLINE_MS, async () => {
    const page = await client.changes("messages", { pageSize: 1 }).next();
    return page.done !== true && page.value.watermark !== null;
  });
});
afterAll(async () => {
  killClientCommands();
  await system?.stop();
});

const start = (args: readonly string[]) => startClientCommand({ key, apiUrl: system.apiUrl }, args);

const command = (args: readonly string[]): Promise<Ended> => start(args).ended;

const expectCode = ({ code, out, err }: Ended, expected: number): void =>
  expect(code, `${out}${err}`).toBe(expected);

/** So small that a first pull has many files. */
const SMALL_FILES = ["--file-bytes", "200000", "--no-transfer-compression"];
const pullInto = (to: string): readonly string[] => [
  "pull",
  "--to",
  to,
  ...SMALL_FILES,
  ...(to === folder ? ["--compress", "zst"] : []),
];

const expectPulled = async (to: string): Promise<void> => {
  expectCode(await command(pullInto(to)), 0);
};

const changedAt = (file: string): number => statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? 0;

const killPull = async (to: string, stateFile: string): Promise<boolean> => {
  const { child, ended } = start(pullInto(to));
  let stores = random.int(4);
  const pauseMs = random.int(stores === 0 ? 1_500 : 100);
  for (let last = changedAt(stateFile); stores > 0 && child.exitCode === null; await sleep(3)) {
    const now = changedAt(stateFile);
    if (now !== last) stores -= 1;
    last = now;
  }
  await sleep(pauseMs);
  child.kill("SIGKILL");
  const outcome = await ended;
  if (outcome.code !== null) expectCode(outcome, 0);
  return outcome.code === null;
};

const erase = async (name: string): Promise<void> => {
  const client = createClient({ baseUrl: system.apiUrl, apiKey: key });
  const id = await client.requestErasure({ email: `${name}@example.com` });
  await until("the request is completed", DEADLINE_MS, async () => {
    const { status } = await client.dataSubjectRequest(id);
    expect(status).not.toBe("failed");
    return status === "completed";
  });
};

const startLoad = () => {
  const changes = createRestless({ seed, client: CLIENT, records: 300, now: Date.now });
  let isDone = false;
  const all = (async () => {
    while (!isDone) {
      await delivery.send(Array.from({ length: 1 + random.int(40) }, () => changes().event));
      await sleep(random.int(bySize(600, 200)));
    }
  })();
  // A test failure that ends the servers is reported instead of the load's.
  all.catch(() => {});
  return {
    stop: async (): Promise<void> => {
      isDone = true;
      await all;
    },
  };
};

const listed = (list: (typeof LISTS)[number]): Promise<string[]> =>
  list === "end_users"
    ? walk(`${system.apiUrl}/v2/end-users/?limit=1000`, key)
    : walk(
        `${system.apiUrl}/v2/export/${list}?created_since=1970-01-01T00:00:00Z&created_to=2105-12-31T00:00:00Z`,
        key,
      );

const linesOf = (list: string): string[] =>
  readdirSync(join(folder, list)).flatMap((file) => {
    const lines = zstdDecompressSync(readFileSync(join(folder, list, file)))
      .toString()
      .split("\n");
    expect(lines.pop(), file).toBe("");
    return lines;
  });

const isMidway = (): boolean => {
  const file = join(folder, "state.json");
  if (!existsSync(file)) return false;
  const { lists } = JSON.parse(readFileSync(file, "utf8")) as {
    lists: Record<string, { firstPass: unknown }>;
  };
  return Object.values(lists).some(({ firstPass }) => firstPass !== null);
};

it(
  "keeps copies that are what the lists are, whatever changes, is erased or kills it",
  async () => {
    const load = startLoad();
    await delivery.send(personOf(CLIENT, "gone", new Date().toISOString()));
    let pulls = 0;
    let killed = 0;
    let midway = 0;
    const keepKilling = async (to: string, stateFile: string): Promise<void> => {
      const isDone = (round: number) =>
        round >= KILLS && (to !== folder || midway > 0 || round >= 10 * KILLS);
      for (let round = 0; !isDone(round); round += 1) {
        // Only a first pass has a middle: when none was hit, start another.
        if (round >= KILLS) rmSync(folder, { recursive: true, force: true });
        pulls += 1;
        if (await killPull(to, stateFile)) killed += 1;
        if (to === folder && isMidway()) midway += 1;
      }
    };
    await Promise.all([
      keepKilling(folder, join(folder, "state.json")),
      keepKilling(database, `${database.slice("duckdb:".length)}.wal`),
    ]);
    console.log(`killed ${killed} of ${pulls} pulls, ${midway} in the middle of a list`);
    expect(midway).toBeGreaterThan(0);
    for (const to of [folder, database]) await expectPulled(to);
    expect(linesOf("conversations").join("\n")).toContain('"_id":"gone-1"');
    await Promise.all([
      erase("gone"),
      (async () => {
        for (const to of [folder, database]) await expectPulled(to);
      })(),
    ]);
    await load.stop();
    const client = createClient({ baseUrl: system.apiUrl, apiKey: key });
    await changesStable(system, client, DEADLINE_MS);

    const wanted = new Map<string, string[]>();
    for (const list of LISTS) wanted.set(list, (await listed(list)).toSorted());
    for (const to of [folder, database]) await expectPulled(to);
    for (const to of [folder, database]) {
      const verified = await command(["verify", "--to", to, "--json"]);
      expectCode(verified, 0);
      for (const line of verified.out.trimEnd().split("\n"))
        expect(JSON.parse(line)).toMatchObject({ equal: true, verified: { changed: 0 } });
    }
    expectCode(await command(["compact", "--to", folder]), 0);
    for (const list of LISTS) {
      expect(linesOf(list).toSorted(), list).toEqual(wanted.get(list));
      expect(linesOf(list).some((line) => line.includes('"gone-1'))).toBe(false);
    }

    const [file = ""] = readdirSync(join(folder, "messages")).toSorted();
    rmSync(join(folder, "messages", file));
    expectCode(await command(["verify", "--to", folder, "--list", "messages"]), 6);
    const plain = join(system.logFolder, "plain");
    expectCode(await command(["pull", "--to", plain, "--list", "end_users"]), 0);
    const users = join(plain, "end_users", readdirSync(join(plain, "end_users"))[0] ?? "");
    const [first = "", second = "", ...others] = readFileSync(users, "utf8").split("\n");
    const changed = JSON.stringify({ ...(JSON.parse(second) as object), profile: { other: 1 } });
    writeFileSync(users, [changed, ...others].join("\n"));
    const spoilt = await command(["verify", "--to", plain, "--json"]);
    expectCode(spoilt, 5);
    const idOf = (line: string): unknown => (JSON.parse(line) as { end_user_id: string }).end_user_id;
    expect(JSON.parse(spoilt.out)).toMatchObject({
      equal: false,
      verified: { missing: 1, different: 1, extra: 0, examples: [idOf(first), idOf(second)] },
    });
  },
  bySize(600_000, 45 * 60_000),
);
