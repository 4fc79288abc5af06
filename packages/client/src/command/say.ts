import type { Writable } from "node:stream";
import { visibleText } from "../http/visible-text.ts";

/** All output but records: it escapes quoted text. */
export const say = (output: Writable, text: string): void => {
  const lines = text.split("\n").map((line) => visibleText(line));
  output.write(`${lines.join("\n")}\n`);
};
