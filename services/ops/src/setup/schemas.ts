import { existsSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { asyncApi } from "./async-api.ts";
import { eventSchemas } from "./event-schemas.ts";
import { CommandError, innermostMessage } from "../explain/explain.ts";
import { type Print, renderJson } from "../output/print.ts";

/** Node's recursive `mkdir` loops forever below /proc. */
const makeFolder = async (path: string): Promise<void> => {
  try {
    await mkdir(path);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "EEXIST") return;
    if (code !== "ENOENT" || existsSync(dirname(path))) throw error;
    await makeFolder(dirname(path));
    await mkdir(path);
  }
};

/** @throws CommandError for the folder */
export const putSchemas = async (folder: string | undefined, json: boolean, print: Print): Promise<void> => {
  const files = [...eventSchemas(), asyncApi()];
  if (folder === undefined) {
    return print(renderJson(Object.fromEntries(files.map(({ name, text }) => [name, JSON.parse(text)]))));
  }
  const paths: string[] = [];
  try {
    await makeFolder(resolve(folder));
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
