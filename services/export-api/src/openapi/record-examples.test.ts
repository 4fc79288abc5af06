import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { KIND_NAMES, processEvent, RECORD_KINDS, type RecordKind } from "@conversation-export/domain";
import { describe, expect, it } from "vitest";

const EXAMPLES = new URL("../../../../docs/examples/events/", import.meta.url);

const UPLOADED = "2026-10-20T09:15:43.281907+00:00";

const recordOf = (kind: RecordKind): string => {
  const name = `${kind.replace("_", "-")}-structured.txt`;
  const [, text = ""] = readFileSync(new URL(name, EXAMPLES), "utf8").split("\n\n");
  const place = { partition: 0, offset: 0 };
  const outcome = processEvent({ text, headers: {}, position: place }, RECORD_KINDS[kind].type);
  if (outcome.kind !== "accepted") throw new Error(outcome.reason);
  const { beforeUpload, afterUpload, handoffs, tail } = outcome.record;
  if (afterUpload === null) return beforeUpload;
  const entries = handoffs.map(({ entry }) => entry).filter((entry) => entry !== "");
  return `${beforeUpload}${UPLOADED}${afterUpload}${tail === "" ? "" : `[${entries.join(",")}]${tail}`}`;
};

describe("the records of the examples", () => {
  it("are what becomes of the events in docs/examples/events, as make generate writes them", async () => {
    const file = fileURLToPath(new URL("record-examples.ts", import.meta.url));
    const records = KIND_NAMES.map((kind) => `${kind}: ${recordOf(kind)}`);
    const made = `// Made from docs/examples/events: see record-examples.test.ts.

export const RECORDS = {${records.join(",")}};\n`;
    const input = { input: made, encoding: "utf8" } as const;
    const formatted = execFileSync("biome", ["format", `--stdin-file-path=${file}`], input);
    await expect(formatted).toMatchFileSnapshot(file);
  });

  it.each(KIND_NAMES)("have every field of a %s filled", (kind) => {
    expect(recordOf(kind)).not.toMatch(/null|\[\]|\{\}/);
  });
});
