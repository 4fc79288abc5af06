import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { createClient } from "@conversation-export/client";
import { afterAll, beforeAll, expect, it } from "vitest";
import { walk } from "../compare/walk.ts";
import {
  type Copy,
  createAirbyte,
  createDlt,
  type Fields,
  ID_OF,
  type List,
  LISTS,
  prepareConnectors,
} from "../outside/connectors.ts";
import { createSample } from "../sample/index.ts";
import { handMade } from "../sample/hand-made.ts";
import { personOf } from "../sample/restless.ts";
import { changesStable } from "../system/changes-stable.ts";
import { createDelivery, type Delivery } from "../system/deliver.ts";
import { NO_SCHEDULES } from "../system/no-schedules.ts";
import { bySize, seedOfRun } from "../system/size.ts";
import { startSystem, type System } from "../system/system.ts";
import { until } from "../system/until.ts";

const CLIENT = "acme";
const DEADLINE_MS = 120_000;
/** Smaller than the lists, so that readers follow cursors. */
const PAGE_SIZE = 100;
/** More than change between two runs, far fewer than there are. */
const FEW = 50;

const INGEST = { BATCH_MAX_AGE_MS: "300", WATERMARK_INTERVAL_MS: "500" };

let system: System;
let delivery: Delivery;
let key: string;
let airbyte: ReturnType<typeof createAirbyte>;
let dlt: ReturnType<typeof createDlt>;

beforeAll(async () => {
  const [started, place] = await Promise.all([startSystem("test-connectors"), prepareConnectors()]);
  system = started;
  key = await system.key(CLIENT, ["export", "end_users", "compliance"]);
  delivery = createDelivery(system);
  await Promise.all([
    system.service("ingest", INGEST),
    system.service("export-api"),
    system.service("jobs", NO_SCHEDULES),
  ]);
  const options = { apiUrl: system.apiUrl, key, pageSize: PAGE_SIZE };
  airbyte = createAirbyte(place(join(system.logFolder, "airbyte")), options);
  dlt = createDlt(place(join(system.logFolder, "dlt")), options);
  // dlt rejects unpaired surrogates.
  const plain = { poisonShare: 0, nullShare: 0, nonstandardShare: 0 };
  const sample = { seed: seedOfRun("connectors"), conversations: bySize(150, 5_000), endUsers: 120 };
  await delivery.send(createSample({ ...sample, ...plain, clients: [CLIENT] }));
  await delivery.send(personOf(CLIENT, "gone", new Date().toISOString()));
  const large = `{"n":123456789012345678901234567890,"m":-9223372036854775809,"k":9223372036854775807,"j":${"9".repeat(300)}}`;
  await delivery.send([
    handMade({
      kind: "conversation",
      client: CLIENT,
      id: "large",
      time: new Date().toISOString(),
      data: `{"_id":"large","date_created":"2026-10-05T00:00:00Z","agent_handle_time":123456789012345678901234567890,"variables":${large}}`,
    }),
  ]);
  await changesAreStable();
});
afterAll(async () => {
  await system?.stop();
});

const client = () => createClient({ baseUrl: system.apiUrl, apiKey: key });

const changesAreStable = (): Promise<void> => changesStable(system, client(), DEADLINE_MS);

const listed = async (list: List): Promise<Copy> => {
  const path =
    list === "end_users"
      ? "/v2/end-users/?limit=1000"
      : `/v2/export/${list}?created_since=1970-01-01T00:00:00Z&created_to=2105-12-31T00:00:00Z`;
  const records = (await walk(system.apiUrl + path, key)).map((text) => JSON.parse(text) as Fields);
  return new Map(records.map((record) => [String(record[ID_OF[list]]), record]));
};

const change = async (): Promise<void> => {
  const known = [...(await listed("conversations"))].filter(([id]) => !id.startsWith("gone"));
  const [first, second] = known.map(([, record]) => record);
  const conversation = (data: Fields) => {
    const id = String(data["_id"]);
    return handMade({ kind: "conversation", client: CLIENT, id, time: new Date().toISOString(), data });
  };
  await delivery.send([
    conversation({ ...first, language: "changed", agent_handle_time: 1.5, variables: { n: [1, null, "ü"] } }),
    conversation({ ...second, language: "changed", date_updated: "2020-01-01T00:00:00Z" }),
    conversation({ _id: "new", date_created: "2026-10-05T00:00:00Z", language: "new" }),
  ]);
  const id = await client().requestErasure({ email: "gone@example.com" });
  await until("the request is completed", DEADLINE_MS, async () => {
    return (await client().dataSubjectRequest(id)).status === "completed";
  });
  await changesAreStable();
};

const isSame = (given: unknown, kept: unknown): boolean =>
  isDeepStrictEqual(given ?? null, kept ?? null) ||
  (typeof given === "string" &&
    typeof kept === "string" &&
    Date.parse(given) === Date.parse(`${kept.replace(" ", "T")}:00`));

const expectEqual = async (list: List, copy: Copy): Promise<void> => {
  const wanted = await listed(list);
  expect([...copy.keys()].toSorted(), list).toEqual([...wanted.keys()].toSorted());
  const different = [...wanted].flatMap(([id, record]) =>
    Object.keys(record)
      .filter((name) => !isSame(record[name], copy.get(id)?.[name]))
      .map((name) => `${id} ${name}: ${JSON.stringify([record[name], copy.get(id)?.[name]])}`),
  );
  expect(different, list).toEqual([]);
};

const expectAirbyteEqual = async (): Promise<void> => {
  for (const list of LISTS) await expectEqual(list, airbyte.copy(list));
};
const expectDltEqual = async (): Promise<void> => {
  const rows = await dlt.rows();
  for (const list of LISTS) {
    // A map by id would hide a repeated row.
    expect(new Set(rows[list].map((row) => row[ID_OF[list]])).size).toBe(rows[list].length);
    await expectEqual(list, new Map(rows[list].map((row) => [String(row[ID_OF[list]]), row])));
  }
};

it("the source for Airbyte checks its key and names every field", async () => {
  const [good, bad, streams] = await Promise.all([
    airbyte.check(),
    airbyte.check("no-key"),
    airbyte.discover(),
  ]);
  expect([good, bad]).toEqual(["SUCCEEDED", "FAILED"]);
  for (const list of LISTS) {
    const [record = {}] = (await listed(list)).values();
    const stream = streams.find(({ name }) => name === list);
    const own = ["_deleted", "_deleted_at", "_stored_since"];
    expect(Object.keys(stream?.json_schema.properties ?? {}).toSorted()).toEqual(
      [...Object.keys(record), ...own].toSorted(),
    );
    expect(stream).toMatchObject({
      supported_sync_modes: ["full_refresh", "incremental"],
      source_defined_primary_key: [[ID_OF[list]]],
    });
  }
});

it("the sources keep what the lists hold: first everything, then what changed since, deletions included", async () => {
  const [all] = await Promise.all([airbyte.read("incremental"), dlt.load()]);
  expect(all.length).toBeGreaterThan(5 * FEW);
  await expectAirbyteEqual();
  await expectDltEqual();

  await change();
  const [changed] = await Promise.all([airbyte.read("incremental"), dlt.load()]);
  expect(changed.length).toBeLessThan(FEW);
  expect(changed).toContainEqual(expect.objectContaining({ _id: "gone-1", _deleted: true }));
  await expectAirbyteEqual();
  await expectDltEqual();
  const loads = (await dlt.rows()).conversations.map((row) => String(row["_dlt_load_id"])).toSorted();
  const latest = loads.filter((load) => load === loads.at(-1)).length;
  expect(latest).toBeGreaterThanOrEqual(3);
  expect(latest).toBeLessThan(FEW);

  expect((await airbyte.read("full_refresh")).length).toBeGreaterThan(5 * FEW);
  await expectAirbyteEqual();
});
