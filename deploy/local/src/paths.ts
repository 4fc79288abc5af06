import { join } from "node:path";

/** The folder deploy/local. */
export const packageFolder = join(import.meta.dirname, "..");

/** The top folder of the project. */
export const projectFolder = join(packageFolder, "..", "..");

/** Downloads that every stack of this project shares. */
export const cacheFolder = join(projectFolder, ".cache");
