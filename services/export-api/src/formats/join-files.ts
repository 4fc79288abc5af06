import { ServiceError } from "@conversation-export/runtime";
import type { Join } from "./window-stream.ts";
import { type Footer, MAGIC, readFooter, writeFooter } from "./footer.ts";

/** Behind the footer: its length in four bytes, and the magic. */
const END_BYTES = 4 + MAGIC.length;
/** For the footer: this much, or this share of what passed. */
const KEPT_BYTES = 1024 * 1024;
const KEPT_SHARE = 1 / 32;
const NOTHING = Buffer.alloc(0);

const broken = (what: string, cause?: unknown): ServiceError =>
  new ServiceError("parquet_broken", `a part of the Parquet file ${what}`, { retryable: true, cause });

const createEnd = () => {
  const chunks: Buffer[] = [];
  let kept = 0;
  let read = 0;
  return {
    add: (chunk: Buffer): void => {
      chunks.push(chunk);
      kept += chunk.length;
      read += chunk.length;
      const least = Math.max(KEPT_BYTES, read * KEPT_SHARE);
      for (let [oldest] = chunks; oldest !== undefined && kept - oldest.length >= least; [oldest] = chunks) {
        kept -= oldest.length;
        chunks.shift();
      }
    },
    footer: (by: number): Footer => {
      const bytes = Buffer.concat(chunks);
      if (bytes.length < END_BYTES || !bytes.subarray(-MAGIC.length).equals(MAGIC))
        throw broken("does not end with a footer");
      const start = bytes.length - END_BYTES - bytes.readUInt32LE(bytes.length - END_BYTES);
      if (start < 0) throw broken("has a footer that was not kept");
      try {
        return readFooter(bytes.subarray(start, -END_BYTES), by);
      } catch (error) {
        throw broken("has a footer that cannot be read", error);
      }
    },
  };
};

/** A file's end is held back, so that a cut answer is never a whole file. */
export const joinFiles = (facts: () => Readonly<Record<string, string>>): Join => {
  let passed = 0;
  let rows = 0;
  let first: Footer["shared"] | undefined;
  const groups: Buffer[] = [];
  let by: number | undefined;
  let held: Buffer = NOTHING;
  let end = createEnd();

  return {
    pass: (chunk) => {
      end.add(chunk);
      let bytes = Buffer.concat([held, chunk]);
      if (by === undefined) {
        held = bytes;
        if (bytes.length < MAGIC.length + END_BYTES) return NOTHING;
        by = passed === 0 ? 0 : passed - MAGIC.length;
        // A magic in the middle could be taken for the end.
        if (passed > 0) bytes = bytes.subarray(MAGIC.length);
      }
      held = Buffer.from(bytes.subarray(-END_BYTES));
      const ready = bytes.subarray(0, -END_BYTES);
      passed += ready.length;
      return ready;
    },
    endStep: () => {
      const footer = end.footer(by ?? 0);
      if (first !== undefined && !footer.shared.schema.equals(first.schema))
        throw broken("has other columns than the first");
      first ??= footer.shared;
      rows += footer.rows;
      groups.push(...footer.groups);
      by = undefined;
      held = NOTHING;
      end = createEnd();
    },
    end: () => {
      if (first === undefined) throw broken("is missing");
      return writeFooter({ rows, groups, shared: first }, facts());
    },
    count: () => rows,
  };
};
