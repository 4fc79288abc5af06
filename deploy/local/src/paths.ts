import { join } from "node:path";

export const packageFolder = join(import.meta.dirname, "..");

export const projectFolder = join(packageFolder, "..", "..");

export const cacheFolder = join(projectFolder, ".cache");
