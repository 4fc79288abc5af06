import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach } from "vitest";

/** A folder for each test; gives paths in it. */
export const useRoot = (): ((name?: string) => string) => {
  let root: string;
  beforeEach(() => {
    root = mkdtempSync(join(tmpdir(), "client-"));
  });
  afterEach(() => rmSync(root, { recursive: true, force: true }));
  return (name = "") => join(root, name);
};
