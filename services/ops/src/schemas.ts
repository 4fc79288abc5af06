import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { eventSchemas } from "./event-schemas.ts";
import { CommandError, innermostMessage } from "./explain.ts";
import { type Print, renderJson } from "./print.ts";

/**
 * Prints the schemas as one JSON object by event type, or writes one file each into a folder and prints their paths.
 * Throws `CommandError` when the folder cannot be written to.
 */
export const putSchemas = async (folder: string | undefined, json: boolean, print: Print): Promise<void> => {
  const files = eventSchemas();
  if (folder === undefined) {
    return print(renderJson(Object.fromEntries(files.map(({ name, text }) => [name, JSON.parse(text)]))));
  }
  const paths: string[] = [];
  try {
    await mkdir(folder, { recursive: true });
    for (const { name, text } of files) {
      const path = join(folder, name);
      await writeFile(path, text);
      paths.push(path);
    }
  } catch (error) {
    throw new CommandError(
      `the folder ${folder} cannot be written to: choose another one (${innermostMessage(error)})`,
      { cause: error },
    );
  }
  print(json ? renderJson(paths) : paths.join("\n"));
};
