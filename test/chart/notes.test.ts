import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { helm } from "./examples.ts";
import { exampleFile, runProgram } from "./helm.ts";
import { countAddresses } from "./page-address.ts";
import { CHART } from "./values-table.ts";

const notesWith = (set: Readonly<Record<string, unknown>> = {}): string => {
  const { stdout, stderr } = runProgram(helm ?? "", [
    "install",
    "demo",
    CHART,
    "--dry-run=client",
    `--values=${exampleFile("minimal")}`,
    ...Object.entries(set).flatMap(([path, value]) => ["--set-json", `${path}=${JSON.stringify(value)}`]),
  ]);
  const [, notes] = stdout.split("\nNOTES:\n");
  if (notes === undefined) throw new Error(stderr);
  return notes;
};

it("the notes ask for a page whose window holds today, behind whatever they find", () => {
  const source = readFileSync(join(CHART, "templates/NOTES.txt"), "utf8");
  expect(countAddresses(source)).toEqual({ all: 3, current: 3 });
});

describe.skipIf(helm === null)("the notes", () => {
  it("warn of what is reached without TLS, and of nothing else", () => {
    expect(notesWith()).toContain(
      "without TLS, to and from Kafka (kafka.tls.enabled), ClickHouse (https: in clickhouse.url), Redis (rediss:",
    );
    const tls = {
      "kafka.tls.enabled": true,
      "clickhouse.url": "https://clickhouse:8443/export",
      "redis.url": "rediss://redis:6379",
    };
    expect(notesWith(tls)).not.toContain("WARNING");
    expect(notesWith({ ...tls, "redis.url": "redis://redis:6379" })).toContain("to and from Redis (rediss:");
  });

  it("tell the way to the board where there is one, and warn where no policy closes it", () => {
    expect(notesWith()).not.toContain("jobs-board");
    const board = { "jobs.board.existingSecret": { name: "board" } };
    expect(notesWith(board)).toContain("port-forward service/demo-conversation-export-jobs-board 9091");
    expect(notesWith({ "networkPolicy.enabled": false })).toContain(
      "every pod of the cluster reaches metrics,",
    );
    expect(notesWith({ ...board, "networkPolicy.enabled": false })).toContain(
      "reaches metrics and the board,",
    );
  });
});
