import { join } from "node:path";
import { fileURLToPath } from "node:url";

const LOCAL = fileURLToPath(new URL("../../.local", import.meta.url));

/** With KEEP=1 the logs of a failed file stay until somebody removes them. */
export const keepsLogs = process.env["KEEP"] === "1";

/** The folder of a system, which its next run empties; with KEEP=1 one of this run. */
export const systemFolder = (name: string): string =>
  keepsLogs ? join(LOCAL, "kept", `${name}-${Date.now()}`) : join(LOCAL, name);

/** Folders with the logs of the servers and services that this file of tests uses. */
export const logFolders = new Map<string, "own" | "shared">();
