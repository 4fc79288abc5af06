import { expect } from "vitest";
import { handMade } from "../sample/hand-made.ts";
import type { BusEvent } from "../sample/index.ts";
import { createDelivery, type Delivery } from "./deliver.ts";
import type { ServiceProcess } from "./service-process.ts";
import { startSystem, type System } from "./system.ts";
import { until } from "./until.ts";

export const CLIENT = "acme";
const CREATED = "2026-10-04T00:00:00Z";
export const ENV = { ERASURE_INTERVAL_SECONDS: "1" };

type Receipt = { readonly deleted_rows: Readonly<Record<string, number>> };

export type ErasureTrial = {
  readonly system: System;
  readonly delivery: Delivery;
  readonly jobs: ServiceProcess;
  ingest: ServiceProcess;
  readonly key: string;
  event(kind: BusEvent["kind"], id: string, data: Record<string, unknown>): BusEvent;
  person(name: string): BusEvent[];
  /** Without stamps. */
  readAll(): Promise<string>;
  /** Returns the address of the status. */
  request(body: Record<string, unknown>): Promise<string>;
  statusAt(address: string): Promise<{ readonly status: string; readonly receipt?: Receipt }>;
  completed(address: string): Promise<void>;
  erase(body: Record<string, unknown>): Promise<void>;
  ingestAgain(groupId: string): Promise<void>;
};

export const startErasureTrial = async (name: string): Promise<ErasureTrial> => {
  const system = await startSystem(name);
  const delivery = createDelivery(system);
  const key = await system.key(CLIENT, ["export", "end_users", "compliance"]);
  const [ingest, jobs] = await Promise.all([
    system.service("ingest", ENV),
    system.service("jobs", ENV),
    system.service("export-api"),
  ]);

  let exported = 0;
  const event = (kind: BusEvent["kind"], id: string, data: Record<string, unknown>): BusEvent => {
    exported += 1;
    const time = new Date(Date.UTC(2026, 9, 5) + exported * 1_000).toISOString();
    const own =
      kind === "end_user" ? { end_user_id: id, created_at: CREATED } : { _id: id, date_created: CREATED };
    return handMade({ kind, client: CLIENT, id, time, data: { ...own, ...data } });
  };

  const person = (name: string): BusEvent[] => [
    event("end_user", `${name}-user`, { profile: { email: `${name}@example.com`, first_name: name } }),
    event("conversation", `${name}-1`, {
      chatter_id: `${name}-chatter`,
      end_user_id: `${name}-user`,
      handoffs: [{ id: `${name}-h`, handoff_id: null, date_created: CREATED, reasoning: `${name} asked` }],
    }),
    event("message", `${name}-1-1`, { conversation_id: `${name}-1`, chatter_id: `${name}-chatter` }),
    event("message", `${name}-1-2`, {
      conversation_id: `${name}-1`,
      message_data: { _type: "text", body: name },
    }),
  ];

  const get = async (path: string): Promise<string> => {
    const answer = await fetch(`${system.apiUrl}${path}`, { headers: { authorization: `Bearer ${key}` } });
    expect(answer.status, path).toBe(200);
    return answer.text();
  };

  const readAll = async (): Promise<string> => {
    const window = "created_since=2026-01-01T00:00:00Z&created_to=2027-01-01T00:00:00Z";
    const updated = window.replaceAll("created", "updated");
    const pages = await Promise.all(
      [
        `/v2/export/conversations?${window}`,
        `/v2/export/conversations?${updated}`,
        `/v2/export/messages?${window}`,
        "/v2/end-users/",
      ].map(get),
    );
    return pages.join("\n").replace(/"record_last_updated":"[^"]*"/g, "");
  };

  const request = async (body: Record<string, unknown>): Promise<string> => {
    const answer = await fetch(`${system.apiUrl}/v2/data-subject-request`, {
      method: "POST",
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
      body: JSON.stringify({ type: "ERASURE", ...body }),
    });
    expect(answer.status).toBe(200);
    return new URL(answer.headers.get("location") ?? "", system.apiUrl).pathname.replace(/^\/api/, "");
  };

  const statusAt = async (
    address: string,
  ): Promise<{ readonly status: string; readonly receipt?: Receipt }> =>
    JSON.parse(await get(address)) as { status: string; receipt?: Receipt };

  const completed = (address: string): Promise<void> =>
    until("the request is completed", 60_000, async () => {
      const { status, receipt } = await statusAt(address);
      expect(status).not.toBe("failed");
      if (status !== "completed") return false;
      expect(receipt?.deleted_rows).toBeDefined();
      expect(JSON.stringify(receipt)).not.toMatch(/@|gone|held|hung|hidden/);
      return true;
    });

  const erase = async (body: Record<string, unknown>): Promise<void> => {
    const address = await request(body);
    await completed(address);
    const list = JSON.parse(await get("/v2/data-subject-request")) as { data: { request_id: string }[] };
    expect(list.data[0]?.request_id).toBe(address.split("/").at(-1));
    const id = address.split("/").at(-1) ?? "";
    const noted = `SELECT state FROM audit WHERE command = 'erasure' AND arguments LIKE '%${id}%' ORDER BY at FORMAT TSV`;
    await until("the audit has it", 10_000, async () => (await system.sql(noted)) === "begun\ndone");
  };

  const trial: ErasureTrial = {
    system,
    delivery,
    jobs,
    ingest,
    key,
    event,
    person,
    readAll,
    request,
    statusAt,
    completed,
    erase,
    ingestAgain: async (groupId) => {
      trial.ingest = await system.service("ingest", { ...ENV, KAFKA_GROUP_ID: groupId });
      await system.caughtUp(60_000, groupId);
    },
  };
  return trial;
};
