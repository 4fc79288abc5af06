import { execFile, execFileSync } from "node:child_process";
import { once } from "node:events";
import { cpSync, globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, it } from "vitest";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const PACK = fileURLToPath(new URL("pack-client.ts", import.meta.url));

let folder = "";
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "pack-client-"));
  execFileSync(process.execPath, [PACK, folder]);
  execFileSync("tar", ["xzf", globSync(join(folder, "*.tgz"))[0] ?? "", "-C", folder]);
}, 120_000);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const inPackage = (path: string): string => join(folder, "package", path);

it("has a library and a command that Node runs as they are", async () => {
  const help = execFileSync(process.execPath, [inPackage("dist/command/main.js"), "--help"], {
    encoding: "utf8",
  });
  expect(help).toContain("usage: conversation-export-client");
  const { createClient } = (await import(inPackage("dist/index.js"))) as { createClient: unknown };
  expect(createClient).toBeTypeOf("function");
});

it("names what it has, and has no tests and no sources", () => {
  const { exports, bin } = JSON.parse(readFileSync(inPackage("package.json"), "utf8")) as {
    exports: { ".": Record<string, string> };
    bin: Record<string, string>;
  };
  for (const path of [...Object.values(exports["."]), ...Object.values(bin), "README.md", "LICENSE"])
    expect(readFileSync(inPackage(path), "utf8"), path).not.toBe("");
  const files = globSync("**/*.*", { cwd: inPackage("") });
  expect(files.filter((file) => /\.(test|fixture)\.|(?<!\.d)\.ts$/.test(file))).toEqual([]);
});

it("runs the first example of packages/client/README.md as it stands", async () => {
  const page = join(ROOT, "packages/client/README.md");
  const [, example = ""] = /^```js\n(.*?)^```$/ms.exec(readFileSync(page, "utf8")) ?? [];
  const project = join(folder, "project");
  mkdirSync(join(project, "node_modules/@conversation-export"), { recursive: true });
  cpSync(inPackage(""), join(project, "node_modules/@conversation-export/client"), { recursive: true });
  writeFileSync(join(project, "package.json"), '{"type":"module"}');
  writeFileSync(join(project, "read.js"), example);
  const server = createServer((_, response) => {
    response.setHeader("content-type", "application/json");
    response.end('{"data":[{"_id":"c-1","csat":null}],"meta":{"next_page_uri":null}}');
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  try {
    const { port } = server.address() as AddressInfo;
    // Older Node.js runs only plain JavaScript.
    const { stdout } = await promisify(execFile)(
      process.execPath,
      ["--no-experimental-strip-types", "read.js"],
      {
        cwd: project,
        env: { EXPORT_API_URL: `http://127.0.0.1:${port}/api`, EXPORT_API_KEY: "k" },
      },
    );
    expect(stdout).toContain("c-1");
  } finally {
    server.closeAllConnections();
    server.close();
  }
});
