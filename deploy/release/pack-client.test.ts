import { execFileSync } from "node:child_process";
import { globSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, it } from "vitest";

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
