import { realpathSync } from "node:fs";
import { homedir } from "node:os";
import { join, resolve } from "node:path";
import { isCode, UsageError } from "./exit-code.ts";

/** Addresses and databases of other programs; one letter is a Windows drive. */
const ELSEWHERE = /^(?:[A-Za-z][\w+.-]+:|:[^/\\]*:)/;
const HOME = /^~(?=$|[/\\])/;

/** Expands `~`, which a shell does not behind a colon. @throws UsageError */
export const localPath = (option: string, text: string): string => {
  if (text === "") throw new UsageError(`${option}: names no file or folder`);
  if (ELSEWHERE.test(text))
    throw new UsageError(`${option}: ${text} is no local path; one of this name is written ./${text}`);
  if (HOME.test(text)) return resolve(join(homedir(), text.slice(1)));
  if (text.startsWith("~"))
    throw new UsageError(`${option}: ${text} is no local path; one of this name is written ./${text}`);
  return resolve(text);
};

/** The target of a link, or the path itself. */
export const behindLinks = (path: string): string => {
  try {
    return realpathSync(path);
  } catch (error) {
    if (isCode(error, "ENOENT") || isCode(error, "ENOTDIR")) return path;
    throw error;
  }
};
