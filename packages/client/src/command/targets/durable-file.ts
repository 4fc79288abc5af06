import { open, rename } from "node:fs/promises";
import { dirname } from "node:path";

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

/** Gives a finished file its name: whoever finds the name finds all of the content. */
export const publishFile = async (temporary: string, file: string): Promise<void> => {
  await rename(temporary, file);
  await syncFolder(dirname(file));
};

/** Replaces a small file; after a crash it is the old or the new one. */
export const replaceFile = async (file: string, text: string): Promise<void> => {
  const temporary = `${file}.tmp`;
  const handle = await open(temporary, "w");
  try {
    await handle.writeFile(text);
    await handle.sync();
  } finally {
    await handle.close();
  }
  await publishFile(temporary, file);
};
