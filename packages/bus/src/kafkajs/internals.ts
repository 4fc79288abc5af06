import { createRequire } from "node:module";

/** The patches were written for this version. */
const VERSION = "2.2.4";

const require = createRequire(import.meta.url);
const { version } = require("kafkajs/package.json") as { version: string };
if (version !== VERSION)
  throw new Error(
    `kafkajs ${version} is installed: try each patch of patches.ts on it, which are for ${VERSION}`,
  );

export const internals = (path: string): unknown => require(`kafkajs/src/${path}.js`);

export const privateOf = (owner: object, description: string): unknown => {
  const name = Object.getOwnPropertySymbols(owner).find((symbol) => symbol.description === description);
  if (name === undefined) throw new Error(`kafkajs has no ${description}`);
  return (owner as Readonly<Record<symbol, unknown>>)[name];
};

/** All instances of this module patch the same kafkajs. */
const APPLIED = Symbol.for("conversation-export.kafkajs");
const marked = internals("index") as { [APPLIED]?: Set<string> };
const applied = (marked[APPLIED] ??= new Set());

export const patchOnce = (name: string, patch: () => void): void => {
  if (applied.has(name)) return;
  applied.add(name);
  patch();
};
