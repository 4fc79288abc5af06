import { copyFile, type FileHandle, open, readFile, rename, rm } from "node:fs/promises";
import { dirname } from "node:path";
import { CopyError, isCode } from "../exit-code.ts";
import { behindLinks } from "../local-path.ts";

/** @throws CopyError for a folder, since the system's error names no path */
export const readIfThere = async (file: string): Promise<string | undefined> => {
  try {
    return await readFile(file, "utf8");
  } catch (error) {
    if (isCode(error, "ENOENT")) return undefined;
    if (isCode(error, "EISDIR")) throw new CopyError(`${file} is a folder: move it away`);
    throw error;
  }
};

const syncAfter = async (
  path: string,
  flags: string,
  work?: (handle: FileHandle) => Promise<void>,
): Promise<void> => {
  const handle = await open(path, flags);
  try {
    await work?.(handle);
    await handle.sync();
  } finally {
    await handle.close();
  }
};

export const syncFolder = async (folder: string): Promise<void> => {
  // Windows cannot open folders.
  if (process.platform !== "win32") await syncAfter(folder, "r");
};

export const syncFile = (path: string): Promise<void> => syncAfter(path, "r+");

/** A rename cannot cross disks. */
const moveBeside = async (temporary: string, file: string): Promise<string> => {
  const beside = `${file}.tmp`;
  try {
    await copyFile(temporary, beside);
    await syncFile(beside);
  } catch (error) {
    await rm(beside, { force: true });
    throw error;
  }
  await rm(temporary);
  return beside;
};

/** The name appears with complete content; a link's target is replaced, not the link. */
export const publishFile = async (temporary: string, file: string): Promise<void> => {
  const target = behindLinks(file);
  await rename(temporary, target).catch(async (error: unknown) => {
    if (!isCode(error, "EXDEV")) throw error;
    await rename(await moveBeside(temporary, target), target);
  });
  await syncFolder(dirname(target));
};

/** Atomic. */
export const replaceFile = async (file: string, text: string): Promise<void> => {
  const temporary = `${behindLinks(file)}.tmp`;
  await syncAfter(temporary, "w", (handle) => handle.writeFile(text));
  await publishFile(temporary, file);
};
