import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { airbyteManifest, dltSource } from "./connector-fields.ts";

const CONNECTORS = join(import.meta.dirname, "../../packages/connectors");

it.each([
  ["airbyte/manifest.yaml", airbyteManifest],
  ["dlt/conversation_export.py", dltSource],
])("%s has the fields as make generate writes them", async (name, render) => {
  const file = join(CONNECTORS, name);
  await expect(render(readFileSync(file, "utf8"))).toMatchFileSnapshot(file);
});
