import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { createListReader, createTestApp } from "../http/app.fixture.ts";
import { clientTypes, type OpenApi } from "./client-types.fixture.ts";

const FILE = fileURLToPath(new URL("../../../../packages/client/src/interface/types.ts", import.meta.url));

// UPDATE=1 writes the file.
it("gives the client its types", async () => {
  const { app } = createTestApp(createListReader({}).reader, {});
  const document = (await app.inject({ url: "/api/openapi.json", headers: { host: "x" } })).json<OpenApi>();
  const formatted = execFileSync("biome", ["format", `--stdin-file-path=${FILE}`], {
    input: clientTypes(document),
    encoding: "utf8",
  });
  if (process.env["UPDATE"] === "1") writeFileSync(FILE, formatted);
  expect(readFileSync(FILE, "utf8")).toBe(formatted);
});
