import { createRequire } from "node:module";
import { expect, it } from "vitest";
import "../index.ts";

it("loads ioredis without its class that extends String, which slows all strings down", () => {
  const require = createRequire(import.meta.url);
  const { VerbatimString } = require("ioredis/built/resp/verbatim-string.js") as {
    readonly VerbatimString: { readonly prototype?: object };
  };
  expect(VerbatimString.prototype ?? {}).not.toBeInstanceOf(String);
});
