import { execFileSync } from "node:child_process";
import { copyFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

// Node strips no types below node_modules.
const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const SOURCE = join(ROOT, "packages/client");
/** Also in tsconfig.build.json. */
const BUILD = join(ROOT, ".cache/client");

const target = resolve(process.argv[2] ?? "dist");
rmSync(BUILD, { recursive: true, force: true });
mkdirSync(BUILD, { recursive: true });
mkdirSync(target, { recursive: true });
execFileSync("tsc", ["-p", join(SOURCE, "tsconfig.build.json")], { cwd: ROOT, stdio: "inherit" });

const manifest = JSON.parse(readFileSync(join(SOURCE, "package.json"), "utf8")) as Record<string, unknown>;
const { version } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")) as { version: string };
const published = {
  ...manifest,
  version,
  engines: { node: ">=20.3.0" },
  files: ["dist"],
  exports: { ".": { types: "./dist/index.d.ts", default: "./dist/index.js" } },
  bin: { "conversation-export-client": "./dist/command/main.js" },
};
writeFileSync(join(BUILD, "package.json"), `${JSON.stringify(published, null, 2)}\n`);
copyFileSync(join(SOURCE, "README.md"), join(BUILD, "README.md"));
copyFileSync(join(ROOT, "LICENSE"), join(BUILD, "LICENSE"));
const args = ["pack", "--ignore-scripts", "--loglevel=error", "--pack-destination", target];
console.log(execFileSync("npm", args, { cwd: BUILD, encoding: "utf8" }).trim());
