import { join } from "node:path";
import { fileURLToPath } from "node:url";

const LOCAL = fileURLToPath(new URL("../../.local", import.meta.url));

export const keepsLogs = process.env["KEEP"] === "1";

/** Its next run empties it. */
export const systemFolder = (name: string): string =>
  keepsLogs ? join(LOCAL, "kept", `${name}-${Date.now()}`) : join(LOCAL, name);

export const logFolders = new Map<string, "own" | "shared">();
