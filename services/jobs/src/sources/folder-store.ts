import { open, readdir, stat } from "node:fs/promises";
import { join, resolve } from "node:path";
import { ServiceError } from "@conversation-export/runtime";
import type { SourceFile } from "./event-source.ts";
import { byLocation, type FileStore, hasLines } from "./file-store.ts";

const CHUNK_BYTES = 256 * 1024;

const unreadable = (location: string, error: unknown): ServiceError => {
  const why = error instanceof Error && "code" in error ? String(error.code) : String(error);
  return new ServiceError("source_unreadable", `cannot read ${location}: ${why}`, { cause: error });
};

const tagOf = ({ size, mtimeMs }: { size: number; mtimeMs: number }): string =>
  `${size}-${Math.floor(mtimeMs)}`;

/** With subfolders. */
export const createFolderStore = (): FileStore => ({
  list: async (location, signal) => {
    const root = resolve(location);
    const files: SourceFile[] = [];
    try {
      const named = await stat(root);
      if (!named.isDirectory()) return [{ location: root, size: named.size, tag: tagOf(named) }];
      for (const entry of await readdir(root, { recursive: true, withFileTypes: true })) {
        signal.throwIfAborted();
        const path = join(entry.parentPath, entry.name);
        if (!hasLines(path)) continue;
        const found = await stat(path);
        if (found.isFile()) files.push({ location: path, size: found.size, tag: tagOf(found) });
      }
    } catch (error) {
      signal.throwIfAborted();
      throw unreadable(root, error);
    }
    return files.sort(byLocation);
  },
  open: async function* (file, signal) {
    try {
      await using handle = await open(file.location);
      if (tagOf(await handle.stat()) !== file.tag) {
        throw new ServiceError("source_changed", `${file.location} is not the file that was there`);
      }
      const stream = handle.createReadStream({ highWaterMark: CHUNK_BYTES, signal, autoClose: false });
      for await (const chunk of stream) yield chunk as Buffer;
    } catch (error) {
      signal.throwIfAborted();
      throw error instanceof ServiceError ? error : unreadable(file.location, error);
    }
  },
});
