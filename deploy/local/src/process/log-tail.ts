import { closeSync, fstatSync, openSync, readSync, statSync } from "node:fs";

export function fileSize(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0;
}

export function readFrom(path: string, from: number): string {
  if (fileSize(path) <= from) return "";
  const file = openSync(path, "r");
  try {
    const bytes = Buffer.alloc(fstatSync(file).size - from);
    const length = readSync(file, bytes, 0, bytes.length, from);
    return bytes.toString("utf8", 0, length);
  } finally {
    closeSync(file);
  }
}

/** Reads at most 64 kB. */
export function tail(path: string, lines: number, from = 0): string {
  const text = readFrom(path, Math.max(from, fileSize(path) - 65_536));
  return text.trimEnd().split("\n").slice(-lines).join("\n");
}
