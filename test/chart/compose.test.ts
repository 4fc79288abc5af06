import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { countAddresses } from "./page-address.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));

type Service = {
  readonly image: string;
  readonly command?: readonly string[];
  readonly profiles?: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
  readonly depends_on?: Readonly<Record<string, { readonly condition: string }>>;
};
type Reader = (env: Readonly<Record<string, string>>) => unknown;

const text = readFileSync(join(ROOT, "deploy/compose.yaml"), "utf8");
const servicesOf = (file: string) =>
  (parse(file, { merge: true }) as { services: Readonly<Record<string, Service>> }).services;
// Unset variables take the default after `:-`.
const services = servicesOf(text.replaceAll(/\$\{\w+:-([^}]*)\}/g, "$1"));
const serviceOf = (name: string): Service => {
  const service = services[name];
  if (service === undefined) throw new Error(`deploy/compose.yaml has no ${name}`);
  return service;
};
const configOf = async (service: string): Promise<Readonly<Record<string, Reader>>> =>
  (await import(pathToFileURL(join(ROOT, "services", service, "src/config.ts")).href)) as Record<
    string,
    Reader
  >;

describe("deploy/compose.yaml", () => {
  it("begins with the address of a page whose window holds today", () => {
    expect(countAddresses(text)).toEqual({ all: 1, current: 1 });
  });

  it.each([
    "ingest",
    "export-api",
    "jobs",
  ])("gives %s what it needs, after migrations and topics", async (name) => {
    const { command, environment = {}, depends_on: after } = serviceOf(name);
    expect(command).toEqual([`services/${name}/src/main.ts`]);
    const read = (await configOf(name))["readConfig"];
    expect(() => read?.(environment)).not.toThrow();
    expect(after).toMatchObject({
      migrate: { condition: "service_completed_successfully" },
      topics: { condition: "service_completed_successfully" },
    });
  });

  it.each([
    ["migrate", ["readWarehouseConfig", "readOperator"]],
    ["topics", ["readBusConfig", "readWarehouseConfig", "readOperator"]],
    [
      "ops",
      [
        "readWarehouseConfig",
        "readBusConfig",
        "readQueueConfig",
        "readSuppressionSecret",
        "readRequestSecret",
        "readServiceUsers",
      ],
    ],
  ] as const)("gives %s what its commands need", async (name, readers) => {
    const config = await configOf("ops");
    for (const reader of readers)
      expect(() => config[reader]?.(serviceOf(name).environment ?? {}), reader).not.toThrow();
    expect(Object.keys(config)).toEqual(expect.arrayContaining([...readers]));
  });

  it.each([
    ["export-api", "CURSOR_SECRET"],
    ["jobs", "BOARD_PASSWORD"],
  ])("lets %s know two values of %s while it is changed", (name, secret) => {
    const given = servicesOf(text)[name]?.environment ?? {};
    expect(given[`${secret}_PREVIOUS`]).toBe(`\${${secret}_PREVIOUS:-}`);
    expect(given[secret]).toContain(`\${${secret}:-`);
  });

  it("starts the three servers alone without a profile", () => {
    const always = Object.keys(services).filter((name) => services[name]?.profiles === undefined);
    expect(always).toEqual(["kafka", "clickhouse", "redis"]);
    for (const name of always) expect(services[name]?.image).toMatch(/^[a-z/-]+:[\d.]+$/);
  });
});
