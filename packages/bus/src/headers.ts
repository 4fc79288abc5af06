import { createRequire } from "node:module";
import type { BusHeaders } from "./message.ts";

type RawHeader = { readonly key: string; readonly value: Buffer | null };

/** kafkajs' reader of the binary protocol, which it keeps out of its types. */
type ProtocolReader = { readVarIntArray(readOne: unknown): RawHeader[] };

/**
 * Headers by name, several values of one name as an array. Linear, where kafkajs copies the object for each
 * header: ten thousand of them in one message would hold the process for seconds and cost it its membership.
 * Names such as `constructor` are names like others.
 */
export const headersOf = (list: readonly RawHeader[]): BusHeaders => {
  const values = new Map<string, (Buffer | null)[]>();
  for (const { key, value } of list) {
    const known = values.get(key);
    if (known === undefined) values.set(key, [value]);
    else known.push(value);
  }
  return Object.fromEntries(Array.from(values, ([name, all]) => [name, all.length === 1 ? all[0] : all]));
};

let done = false;

/** Puts `headersOf` in the place where kafkajs 2.2.4 folds the headers of a message with `reduce`. */
export const readHeadersInLinearTime = (): void => {
  if (done) return;
  done = true;
  const require = createRequire(import.meta.url);
  const readHeader: unknown = require("kafkajs/src/protocol/recordBatch/header/v0/decoder.js");
  const { prototype } = require("kafkajs/src/protocol/decoder.js") as { prototype: ProtocolReader };
  const { readVarIntArray } = prototype;
  prototype.readVarIntArray = function (readOne) {
    const list = readVarIntArray.call(this, readOne);
    if (readOne === readHeader) {
      Object.defineProperty(list, "reduce", { value: () => headersOf(list) });
    }
    return list;
  };
};
