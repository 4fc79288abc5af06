import { randomUUID } from "node:crypto";
import { existsSync } from "node:fs";
import { link, readdir, rename, rm } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { CopyError, isSystemError } from "../../exit-code.ts";
import { openDuckDbFile } from "./duckdb-file.ts";
import { syncFolder } from "../durable-file.ts";
import { lockForWriting } from "../writer-lock.ts";

const UUID = /^[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}(?:\.wal|\.parts)?$/;
const NO_LINKS = ["EPERM", "ENOTSUP", "EOPNOTSUPP", "ENOSYS", "EMLINK"];

const prefixOf = (file: string): string => `${basename(file)}.new-`;

export const inMaking = (file: string): string => join(dirname(file), `${prefixOf(file)}${randomUUID()}`);

export const isInMaking = (file: string, name: string): boolean =>
  name === `${basename(file)}.lock` ||
  (name.startsWith(prefixOf(file)) && UUID.test(name.slice(prefixOf(file).length)));

const isUnlinkable = (error: unknown): boolean =>
  isSystemError(error) && "code" in error && NO_LINKS.includes(String(error.code));

const giveName = async (made: string, file: string, linkFile: typeof link): Promise<void> => {
  try {
    await linkFile(made, file);
  } catch (error) {
    if (existsSync(file)) return;
    if (!isUnlinkable(error)) throw error;
    // A rename would overwrite another process's file.
    const lock = await lockForWriting(`${file}.lock`);
    try {
      if (!existsSync(file)) await rename(made, file);
    } finally {
      await lock.release();
    }
  }
};

/** A half-made file cannot be opened, so it gets its name last. @throws CopyError */
export const makeDuckDbFile = async (
  file: string,
  settings: Readonly<Record<string, string>>,
  tables: readonly string[],
  linkFile: typeof link = link,
): Promise<void> => {
  if (existsSync(file)) return;
  // The log may be all that is left of a copy; another process may just have made both.
  if (existsSync(`${file}.wal`) && !existsSync(file))
    throw new CopyError(
      `${file}.wal is there without ${file}, which it belongs to: put that file back, or move the log away to begin anew`,
    );
  const made = inMaking(file);
  try {
    const opened = await openDuckDbFile(made, settings);
    try {
      for (const sql of tables) await opened.rows(sql);
      await opened.rows("CHECKPOINT");
    } finally {
      await opened.close();
    }
    await giveName(made, file, linkFile);
  } finally {
    for (const rest of ["", ".wal"]) await rm(`${made}${rest}`, { force: true });
  }
  await syncFolder(dirname(file));
};

/** Call it with the file open. */
export const sweepDuckDbFile = async (file: string): Promise<void> => {
  for (const name of await readdir(dirname(file)))
    if (name.startsWith(prefixOf(file)) && isInMaking(file, name))
      await rm(join(dirname(file), name), { recursive: true, force: true });
};
