import { closeSync, openSync, rmSync, writeSync } from "node:fs";
import { CommandError, innermostMessage } from "../explain/explain.ts";

export const secretManifest = (name: string, key: string): string =>
  `apiVersion: v1\nkind: Secret\nmetadata:\n  name: ${name}\ntype: Opaque\nstringData:\n  key: ${key}\n`;

/** Only the owner reads it; removed when `work` fails. @throws CommandError before `work` if it exists */
export const intoFile = async (path: string, work: () => Promise<string>): Promise<void> => {
  let file: number;
  try {
    file = openSync(path, "wx", 0o600);
  } catch (error) {
    throw new CommandError(
      `${path} cannot be made (${innermostMessage(error)}): name a new file in a folder that is there`,
      { cause: error },
    );
  }
  try {
    writeSync(file, await work());
  } catch (error) {
    rmSync(path, { force: true });
    throw error;
  } finally {
    closeSync(file);
  }
};
