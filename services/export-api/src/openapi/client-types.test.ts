import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { createListReader, createTestApp } from "../http/app.fixture.ts";
import { clientFields, clientTypes, type OpenApi } from "./client-types.fixture.ts";

const FOLDER = new URL("../../../../packages/client/src/interface/", import.meta.url);

// UPDATE=1 writes the files.
it.each([
  ["types.ts", clientTypes],
  ["fields.ts", clientFields],
])("gives the client its %s", async (name, make) => {
  const { app } = createTestApp(createListReader({}).reader, {});
  const document = (await app.inject({ url: "/api/openapi.json", headers: { host: "x" } })).json<OpenApi>();
  const file = fileURLToPath(new URL(name, FOLDER));
  const formatted = execFileSync("biome", ["format", `--stdin-file-path=${file}`], {
    input: make(document),
    encoding: "utf8",
  });
  if (process.env["UPDATE"] === "1") writeFileSync(file, formatted);
  expect(readFileSync(file, "utf8")).toBe(formatted);
});
