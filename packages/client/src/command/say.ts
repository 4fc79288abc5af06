import type { Writable } from "node:stream";
import { visibleText } from "../http/visible-text.ts";

/** Writes a text for people or programs, which may quote others: the only way out but that of records. */
export const say = (output: Writable, text: string): void => {
  const lines = text.split("\n").map((line) => visibleText(line));
  output.write(`${lines.join("\n")}\n`);
};
