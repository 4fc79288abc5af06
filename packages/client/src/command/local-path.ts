import { realpathSync } from "node:fs";
import { homedir } from "node:os";
import { join, resolve } from "node:path";
import { isCode, UsageError } from "./exit-code.ts";

/** What other programs take for another place: addresses, `md:`, `:memory:`; one letter is a disk of Windows. */
const ELSEWHERE = /^(?:[A-Za-z][\w+.-]+:|:[^/\\]*:)/;
const HOME = /^~(?=$|[/\\])/;

/**
 * The absolute path that an option names, so that whatever opens it opens the same: `~` is the home directory,
 * as in a shell, which does not see it behind a colon or an equals sign.
 *
 * @throws UsageError for what is no local path
 */
export const localPath = (option: string, text: string): string => {
  if (text === "") throw new UsageError(`${option}: names no file or folder`);
  if (ELSEWHERE.test(text))
    throw new UsageError(`${option}: ${text} is no local path; one of this name is written ./${text}`);
  if (HOME.test(text)) return resolve(join(homedir(), text.slice(1)));
  if (text.startsWith("~"))
    throw new UsageError(`${option}: ${text} is no local path; one of this name is written ./${text}`);
  return resolve(text);
};

/** The path of the file that is replaced under this name: what a link leads to, or itself when nothing is there. */
export const behindLinks = (path: string): string => {
  try {
    return realpathSync(path);
  } catch (error) {
    if (isCode(error, "ENOENT") || isCode(error, "ENOTDIR")) return path;
    throw error;
  }
};
