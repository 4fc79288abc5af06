import { createRequire, Module } from "node:module";

const require = createRequire(import.meta.url);
const path = require.resolve("ioredis/built/resp/verbatim-string.js");

/** In place of the class of ioredis 6.0.0, which decodes such replies to buffers and makes none of it. */
const VerbatimString = (): never => {
  throw new TypeError("verbatim replies are decoded to buffers");
};

// V8 inlines no method of any string in a process with a class that extends String, as that one does: reading an
// event takes a third longer. This module must be imported before ioredis, and goes when a later ioredis has no such class.
require.cache[path] ??= Object.assign(new Module(path), { loaded: true, exports: { VerbatimString } });
