import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { eventSchemas } from "./event-schemas.ts";
import type { Print } from "./print.ts";

/** Prints the schemas as one JSON object by event type, or writes one file each into a folder. */
export const putSchemas = async (folder: string | undefined, print: Print): Promise<void> => {
  const files = eventSchemas();
  if (folder === undefined) {
    print(
      JSON.stringify(Object.fromEntries(files.map(({ name, text }) => [name, JSON.parse(text)])), null, 2),
    );
    return;
  }
  await mkdir(folder, { recursive: true });
  for (const { name, text } of files) {
    const path = join(folder, name);
    await writeFile(path, text);
    print(path);
  }
};
