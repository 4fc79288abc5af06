import { copyFile, open, readFile, rename, rm } from "node:fs/promises";
import { dirname } from "node:path";
import { CopyError, isCode } from "../exit-code.ts";
import { behindLinks } from "../local-path.ts";

/** The text of a file; undefined: there is none. @throws CopyError for a folder of its name, which the system does not name */
export const readIfThere = async (file: string): Promise<string | undefined> => {
  try {
    return await readFile(file, "utf8");
  } catch (error) {
    if (isCode(error, "ENOENT")) return undefined;
    if (isCode(error, "EISDIR")) throw new CopyError(`${file} is a folder: move it away`);
    throw error;
  }
};

/** Makes names in a folder durable. */
export const syncFolder = async (folder: string): Promise<void> => {
  // Windows opens no folders; its renames are durable by themselves.
  if (process.platform === "win32") return;
  const handle = await open(folder, "r");
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
};

/** Brings the content of a file to the disk. */
export const syncFile = async (path: string): Promise<void> => {
  const handle = await open(path, "r+");
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
};

/** Brings a file beside one on another disk, which cannot be reached by a rename. */
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

/**
 * Gives a finished file its name: whoever finds the name finds all of the content. A link stays, and leads to the
 * new content: the old one must be nowhere.
 */
export const publishFile = async (temporary: string, file: string): Promise<void> => {
  const target = behindLinks(file);
  await rename(temporary, target).catch(async (error: unknown) => {
    if (!isCode(error, "EXDEV")) throw error;
    await rename(await moveBeside(temporary, target), target);
  });
  await syncFolder(dirname(target));
};

/** Replaces a small file; after a crash it is the old or the new one. */
export const replaceFile = async (file: string, text: string): Promise<void> => {
  const temporary = `${behindLinks(file)}.tmp`;
  const handle = await open(temporary, "w");
  try {
    await handle.writeFile(text);
    await handle.sync();
  } finally {
    await handle.close();
  }
  await publishFile(temporary, file);
};
