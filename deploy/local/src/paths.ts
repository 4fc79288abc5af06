import { join } from "node:path";

/** The folder deploy/local. */
export const packageFolder = join(import.meta.dirname, "..");

/** The top folder of the project. */
export const projectFolder = join(packageFolder, "..", "..");

/** Downloads shared by all stacks of this project. */
export const cacheFolder = join(projectFolder, ".cache");
