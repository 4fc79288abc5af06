import { createLogger } from "@conversation-export/runtime";
import { describe, expect, it } from "vitest";
import { createApproval, type Screening } from "./approval.ts";

const CLIENTS = ["acme", "globex"];
const signal = new AbortController().signal;
const idsOf = (client: string, count: number): string[] =>
  Array.from({ length: count }, (_, at) => `${client}-${String(at).padStart(4, "0")}`);

/** Requests that reach so many records each, of clients with 1,000 records and a limit of 10. */
const createDeps = (reaches: Readonly<Record<string, number>>, onHeld: () => void = () => undefined) => {
  const held: string[] = [];
  const probes: { readonly client: string; readonly ids: readonly string[] }[] = [];
  const runs = new Map<string, readonly string[]>();
  const ofClient = (client: string, ids: readonly string[]) => ids.filter((id) => id.startsWith(client));
  const open = (): string[] => Object.keys(reaches).filter((id) => !held.includes(id));
  const approval = createApproval({
    requests: {
      unscreened: (runId, client) => Promise.resolve(ofClient(client, runs.get(runId) ?? [])),
      hold: (_, id) => {
        held.push(id);
        onHeld();
        return Promise.resolve();
      },
    },
    store: {
      reached: (runId, above) =>
        Promise.resolve(
          CLIENTS.map((clientId) => ({
            clientId,
            records: ofClient(clientId, runs.get(runId) ?? []).reduce(
              (sum, id) => sum + (reaches[id] ?? 0),
              0,
            ),
          })).filter(({ records }) => records > above),
        ),
      storedRecords: () => Promise.resolve(1_000),
      probe: (_, probeId, client, ids) => {
        probes.push({ client, ids });
        runs.set(probeId, ids);
        return Promise.resolve();
      },
      collect: () => Promise.resolve({ conversations: 0, messages: 0, endUsers: 0 }),
    },
    rule: { percent: 1, records: 10 },
    log: createLogger({ service: "test", level: "silent" }),
  });

  /** Begins runs until one may go on, as an erasure does. Returns the requests of that one. */
  const screen = async (screening: Screening = approval(signal)): Promise<readonly string[]> => {
    for (let number = 0; ; number += 1) {
      const due = open().filter((id) => !screening.isLeftOut(id));
      runs.set(`run-${number}`, due);
      const { held: more, leftOut } = await screening.hold(`run-${number}`);
      if (more + leftOut === 0) return due;
    }
  };
  return { approval, screen, held, probes, open };
};

const reaching = (ids: readonly string[], records: number) =>
  Object.fromEntries(ids.map((id) => [id, records]));

describe("screening", () => {
  it("finds the large ones among many, without another look at all together", async () => {
    const deps = createDeps({
      ...reaching(idsOf("acme", 100), 0),
      "acme-0007": 11,
      "acme-0070": 500,
      "globex-0": 10,
    });
    expect(await deps.screen()).toHaveLength(99);
    expect(deps.held.toSorted()).toEqual(["acme-0007", "acme-0070"]);
    expect(Math.max(...deps.probes.map(({ ids }) => ids.length))).toBe(50);
    expect(deps.probes.length).toBeLessThanOrEqual(32);
  });

  it("lets no client's large requests keep others waiting, and ends with them in later jobs", async () => {
    const many = idsOf("acme", 100);
    const deps = createDeps({ ...reaching(many, 11), "globex-0": 8, "globex-1": 11, "globex-2": 8 });
    expect(await deps.screen()).toEqual(["globex-0", "globex-2"]);
    expect(deps.probes.filter(({ client }) => client === "acme")).toHaveLength(32);
    expect(deps.held).toContain("globex-1");
    for (let jobs = 1; jobs < 8; jobs += 1) {
      expect(await deps.screen()).toEqual(["globex-0", "globex-2"]);
    }
    expect(deps.open()).toEqual(["globex-0", "globex-2"]);
  });

  it("carries out those of many small requests that it has looked at", async () => {
    const deps = createDeps(reaching(idsOf("acme", 100), 6));
    const done = await deps.screen();
    expect(deps.held).toEqual([]);
    expect(deps.probes).toHaveLength(32);
    expect(done.length).toBeGreaterThan(10);
    expect(done.length).toBeLessThan(32);
  });

  it("has held what it found before it ends", async () => {
    const aborted = new AbortController();
    const deps = createDeps(reaching(idsOf("acme", 8), 11), () => aborted.abort());
    const screening = deps.approval(aborted.signal);
    await expect(deps.screen(screening)).rejects.toThrow("aborted");
    expect(deps.held).toHaveLength(1);
  });

  it("asks for no more ids at once than a query takes", async () => {
    const deps = createDeps({ ...reaching(idsOf("acme", 2_001), 0), "acme-2000": 11 });
    await deps.screen();
    expect(deps.held).toEqual(["acme-2000"]);
    expect(Math.max(...deps.probes.map(({ ids }) => ids.length))).toBe(500);
  });
});
