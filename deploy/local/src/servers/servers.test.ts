import { mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { clickhouseUrl, keepPasswords, libraryPackage } from "./clickhouse.ts";
import { withServiceGrants } from "./clickhouse-users.ts";
import { kafkaProperties, parseJavaVersion } from "./kafka.ts";
import { serviceEnvironment, servicePortVariables, services } from "../supervise/services.ts";

test("users.xml gives the services the rights that they need, as make generate writes them", async () => {
  const path = join(import.meta.dirname, "../../clickhouse/users.xml");
  await expect(withServiceGrants(readFileSync(path, "utf8"), { cluster: null })).toMatchFileSnapshot(path);
});

test("the major version of Java, old numbering included", () => {
  expect(parseJavaVersion('openjdk version "17.0.15" 2025-04-15')).toBe(17);
  expect(parseJavaVersion('openjdk version "21" 2023-09-19')).toBe(21);
  expect(parseJavaVersion('java version "1.8.0_402"')).toBe(8);
  expect(parseJavaVersion("Unable to locate a Java Runtime.")).toBeUndefined();
});

test("Kafka creates no topics by itself and takes short sessions", () => {
  const lines = kafkaProperties(9092, 9093, "/data").split("\n");
  expect(lines).toContain("auto.create.topics.enable=false");
  expect(lines).toContain("group.min.session.timeout.ms=1000");
  expect(lines).toContain("listeners=PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093");
  expect(lines.some((line) => line.startsWith("message.max.bytes"))).toBe(false);
});

test("the platforms that libchdb is published for", () => {
  expect(libraryPackage("linux", "x64")).toBe("@chdb/lib-linux-x64-gnu");
  expect(libraryPackage("darwin", "arm64")).toBe("@chdb/lib-darwin-arm64");
  expect(libraryPackage("win32", "x64")).toBeUndefined();
  expect(libraryPackage("linux", "riscv64")).toBeUndefined();
});

test("a URL survives any password", () => {
  const url = new URL(clickhouseUrl(8123, "writer", "p@ss/w:rd?#", "conversation_export"));
  expect(decodeURIComponent(url.password)).toBe("p@ss/w:rd?#");
  expect(url.host).toBe("127.0.0.1:8123");
  expect(url.pathname).toBe("/conversation_export");
});

test("passwords are drawn once, kept, replaced when given, and private", () => {
  const folder = mkdtempSync(join(tmpdir(), "passwords-"));
  onTestFinished(() => {
    rmSync(folder, { recursive: true });
  });
  const first = keepPasswords(folder, {});
  expect(new Set(Object.values(first)).size).toBe(7);
  expect(keepPasswords(folder, {})).toEqual(first);
  const second = keepPasswords(folder, { writer: "given" });
  expect(second).toEqual({ ...first, writer: "given" });
  expect(keepPasswords(folder, {})).toEqual(second);
  expect(statSync(join(folder, "passwords.json")).mode & 0o777).toBe(0o600);
});

test("each service gets its own user and ports, and every other variable of the caller", () => {
  const about = {
    kafkaBrokers: "127.0.0.1:1",
    clickhouseUrl: (user: string) => user,
    redisUrl: "redis://127.0.0.1:2",
    cursorSecret: "s",
    suppressionSecret: "p",
  };
  const given = { LINK_BOUNDS: "advancing", CLICKHOUSE_URL: "stale", TOPIC_MESSAGES: "m2" };
  const ports = Object.fromEntries(servicePortVariables(services).map((name, index) => [name, 100 + index]));
  const rendered = Object.fromEntries(
    services.map((service) => [service.name, serviceEnvironment(service, given, about, ports)]),
  );
  expect(Object.keys(rendered)).toEqual(["ingest", "export-api", "jobs"]);
  expect(Object.values(rendered).map((env) => env["CLICKHOUSE_URL"])).toEqual(["writer", "reader", "jobs"]);
  const own = (variable: string) => Object.values(rendered).map((env) => env[variable]);
  expect(own("CLICKHOUSE_LOOKUP_URL")).toEqual([undefined, "lookup", undefined]);
  expect(own("CLICKHOUSE_INTAKE_URL")).toEqual([undefined, "intake", undefined]);
  expect(rendered["export-api"]).toMatchObject({ PORT: "102", METRICS_PORT: "101", HOST: "127.0.0.1" });
  for (const env of Object.values(rendered)) {
    expect(env).toMatchObject({
      LINK_BOUNDS: "advancing",
      TOPIC_CONVERSATIONS: "conversations",
      TOPIC_MESSAGES: "m2",
      TOPIC_SMS_TRIGGERS: "sms-triggers",
      KAFKA_GROUP_ID: "conversation-export-ingest",
    });
  }
  expect(new Set(Object.values(rendered).map((env) => env["METRICS_PORT"])).size).toBe(3);
});
