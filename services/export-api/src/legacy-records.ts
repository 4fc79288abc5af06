import { Transform } from "node:stream";
import type { View } from "@conversation-export/domain";

const NEWLINE = 10;
const COMMA = 44;

/**
 * Takes records as UTF-8 JSON separated by newlines and gives the view of each, separated by commas. Holds one
 * chunk and one record that is not whole yet.
 */
export const createLegacyRecords = (view: View): Transform => {
  let pending: Buffer[] = [];
  let isFirst = true;

  const viewLines = (source: Buffer): Buffer => {
    // A view is never longer than its record, and a comma stands for each newline but the last.
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
    // A copy, since what waits for a slow reader would hold the whole of a much larger target.
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
