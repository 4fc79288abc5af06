import { Transform } from "node:stream";
import type { View } from "@conversation-export/domain";

const NEWLINE = 10;
const COMMA = 44;

/** From JSON lines to views separated by commas. */
export const createLegacyRecords = (view: View): Transform => {
  let pending: Buffer[] = [];
  let isFirst = true;

  const viewLines = (source: Buffer): Buffer => {
    // A view is never longer than its record, with at most one comma per newline.
    const target = Buffer.allocUnsafe(source.length + 1);
    let to = 0;
    for (let start = 0; start < source.length; ) {
      const newline = source.indexOf(NEWLINE, start);
      const end = newline === -1 ? source.length : newline;
      if (end > start) {
        if (!isFirst) {
          target[to] = COMMA;
          to += 1;
        }
        isFirst = false;
        to = view(source, start, end, target, to);
      }
      start = end + 1;
    }
    // A slice would keep the much larger target in memory.
    return Buffer.from(target.subarray(0, to));
  };

  return new Transform({
    transform(chunk: Buffer, _encoding, done) {
      const newline = chunk.lastIndexOf(NEWLINE);
      if (newline === -1) {
        pending.push(chunk);
        done();
        return;
      }
      const whole = chunk.subarray(0, newline + 1);
      const lines = pending.length === 0 ? whole : Buffer.concat([...pending, whole]);
      pending = newline + 1 < chunk.length ? [chunk.subarray(newline + 1)] : [];
      done(null, viewLines(lines));
    },
    flush(done) {
      done(null, viewLines(Buffer.concat(pending)));
    },
  });
};
