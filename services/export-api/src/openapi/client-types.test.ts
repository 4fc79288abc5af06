import { execFileSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { createListReader, createTestApp } from "../http/app.fixture.ts";
import { clientFields, clientTypes, type OpenApi } from "./client-types.fixture.ts";

const FOLDER = new URL("../../../../packages/client/src/interface/", import.meta.url);

it.each([
  ["types.ts", clientTypes],
  ["fields.ts", clientFields],
])("gives the client its %s, as make generate writes it", async (name, make) => {
  const { app } = createTestApp(createListReader({}).reader, {});
  const document = (await app.inject({ url: "/api/openapi.json", headers: { host: "x" } })).json<OpenApi>();
  const file = fileURLToPath(new URL(name, FOLDER));
  const formatted = execFileSync("biome", ["format", `--stdin-file-path=${file}`], {
    input: make(document),
    encoding: "utf8",
  });
  await expect(formatted).toMatchFileSnapshot(file);
});
