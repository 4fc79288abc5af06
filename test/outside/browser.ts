import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { delimiter, join } from "node:path";
import { type Browser, chromium } from "playwright-core";

const NAMES = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];

/** Ubuntu's `chromium-browser` is a script that only prints advice. */
const isBrowser = (path: string): boolean =>
  existsSync(path) && spawnSync(path, ["--version"], { stdio: "ignore" }).status === 0;

/** `CHROMIUM` wins; prints a warning if there is none. */
export const findBrowser = (leftOut: string): string | undefined => {
  const given = process.env["CHROMIUM"];
  if (given !== undefined && given !== "") return given;
  const folders = (process.env["PATH"] ?? "").split(delimiter);
  const found = NAMES.flatMap((name) => folders.map((folder) => join(folder, name))).find(isBrowser);
  if (found === undefined) console.log(`!!! no Chromium on the PATH (apt-get install chromium): ${leftOut}`);
  return found;
};

export const startBrowser = (path: string): Promise<Browser> => chromium.launch({ executablePath: path });
