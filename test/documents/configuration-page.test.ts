import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { describe, expect, it } from "vitest";

const ROOT = join(import.meta.dirname, "../..");
const SECTION = /^## (\S+)\n([\s\S]*?)(?=^## |(?![\s\S]))/gm;
const ROW = /^\| `(\w+)` \| (?:`(.*?)`|–) \|/gm;

type Row = { readonly name: string; readonly fallback: string | undefined };
type ReadConfig = (env: Readonly<Record<string, string>>) => unknown;

const text = readFileSync(join(ROOT, "docs/configuration.md"), "utf8");
const documented = new Map<string, Row[]>(
  [...text.matchAll(SECTION)].map(([, service = "", body = ""]) => [
    service,
    [...body.matchAll(ROW)].map(([, name = "", fallback]) => ({ name, fallback })),
  ]),
);

const configs = globSync("services/*/src/config.ts", { cwd: ROOT }).sort();
const serviceOf = (path: string): string => path.split("/")[1] ?? "";

const readersOf = async (path: string): Promise<ReadConfig[]> => {
  const module = (await import(pathToFileURL(join(ROOT, path)).href)) as Record<string, unknown>;
  return Object.values(module).filter((one): one is ReadConfig => typeof one === "function");
};

/** Records the names that a service reads. */
const variablesOf = async (path: string): Promise<string[]> => {
  const names = new Set<string>();
  const env = new Proxy(REQUIRED, {
    get: (values, name) => {
      names.add(String(name));
      return values[String(name)];
    },
  });
  for (const read of await readersOf(path)) read(env);
  return [...names].sort();
};

/** Valid for every schema. */
const REQUIRED: Readonly<Record<string, string>> = {
  CLICKHOUSE_URL: "http://user:password@localhost:8123/conversation_export",
  CLICKHOUSE_LOOKUP_URL: "http://user:password@localhost:8123/conversation_export",
  CLICKHOUSE_INTAKE_URL: "http://user:password@localhost:8123/conversation_export",
  KAFKA_BROKERS: "localhost:9092",
  REDIS_URL: "redis://localhost:6379",
  CURSOR_SECRET: "0123456789abcdef0123456789abcdef",
  SUPPRESSION_SECRET: "fedcba9876543210fedcba9876543210",
  OPERATOR: "jane@example.com",
  BOARD_PASSWORD: "a password of the board",
  OTEL_EXPORTER_OTLP_ENDPOINT: "http://localhost:4318",
};

/** Valid, but not the default. */
const another = (value: string): string => {
  const others: Readonly<Record<string, string>> = {
    info: "debug",
    on: "off",
    off: "on",
    same: "advancing",
    "0.0.0.0": "127.0.0.1",
    loopback: "uniquelocal",
    "10/1s": "11/1s",
    "20/1m": "off",
    "1/1s,100/1h,1000/1d": "off",
    "1200/1m": "off",
    "10/1s,10000/1d": "off",
    "0.01": "0.02",
    // Key look-ups are cached for no longer.
    "10": "9",
    // One more is the board's default port.
    "9090": "9190",
  };
  return others[value] ?? (/^\d+$/.test(value) ? String(Number(value) + 1) : `${value}-other`);
};

describe("docs/configuration.md", () => {
  it("has a table for every service", () => {
    expect(configs.length).toBeGreaterThan(0);
    expect(
      [...documented]
        .filter(([, rows]) => rows.length > 0)
        .map(([service]) => service)
        .sort(),
    ).toEqual(configs.map(serviceOf));
  });

  it.each(configs)("names exactly the variables of %s", async (path) => {
    const names = documented.get(serviceOf(path))?.map(({ name }) => name) ?? [];
    expect(names.toSorted()).toEqual(await variablesOf(path));
  });

  it.each(configs)("tells the defaults of %s", async (path) => {
    const readers = await readersOf(path);
    const read = (env: Readonly<Record<string, string>>): unknown[] =>
      readers.map((reader) => reader({ ...REQUIRED, ...env }));
    const asItIs = read({});
    for (const { name, fallback } of documented.get(serviceOf(path)) ?? []) {
      if (fallback === undefined) continue;
      expect(read({ [name]: fallback }), `${name}=${fallback}`).toEqual(asItIs);
      expect(read({ [name]: another(fallback) }), `${name}=${another(fallback)}`).not.toEqual(asItIs);
    }
  });
});

describe("docs/jobs.md", () => {
  it("names the interval of each job with a schedule as docs/configuration.md does", () => {
    const page = readFileSync(join(ROOT, "docs/jobs.md"), "utf8");
    const seconds: Readonly<Record<string, number>> = { minute: 60, hour: 3_600, week: 604_800 };
    const told = [
      ...page.matchAll(/^\| \[(\w+)\]\(#\S+\) \| [^|]*\bevery (\d+)? ?(minute|hour|week)s? \|/gm),
    ].map(([, job = "", count = "1", unit = ""]) => [
      `${job.toUpperCase()}_INTERVAL_SECONDS`,
      String(Number(count) * (seconds[unit] ?? 0)),
    ]);
    const rows = documented.get("jobs") ?? [];
    const wanted = rows.filter(({ name }) => /^[A-Z]+_INTERVAL_SECONDS$/.test(name));
    expect(Object.fromEntries(told)).toEqual(
      Object.fromEntries(wanted.map(({ name, fallback }) => [name, fallback])),
    );
  });
});
