/** null: too long. Counted from 1. */
export type Line = { readonly number: number; readonly bytes: Buffer | null };

const LF = 0x0a;
const BLANKS: ReadonlySet<number | undefined> = new Set([0x20, 0x09, 0x0d]);
const BYTE_ORDER_MARK = Buffer.from([0xef, 0xbb, 0xbf]);

/** Leaves blank lines out. */
export function createLineCutter(maxBytes: number) {
  let number = 0;
  let held: Buffer[] = [];
  let heldBytes = 0;
  let tooLong = false;

  function hold(piece: Buffer): void {
    if (tooLong || piece.length === 0) return;
    heldBytes += piece.length;
    if (heldBytes > maxBytes) {
      tooLong = true;
      held = [];
      return;
    }
    held.push(piece);
  }

  function finish(): Line[] {
    number += 1;
    let bytes = held.length === 1 ? held[0] : Buffer.concat(held);
    const wasTooLong = tooLong;
    held = [];
    heldBytes = 0;
    tooLong = false;
    if (wasTooLong || bytes === undefined) return [{ number, bytes: null }];
    if (number === 1 && bytes.subarray(0, 3).equals(BYTE_ORDER_MARK)) bytes = bytes.subarray(3);
    let end = bytes.length;
    while (end > 0 && BLANKS.has(bytes[end - 1])) end -= 1;
    return end === 0 ? [] : [{ number, bytes: bytes.subarray(0, end) }];
  }

  return {
    /** May be views of the chunk. */
    push(chunk: Buffer): Line[] {
      const lines: Line[] = [];
      let start = 0;
      for (let at = chunk.indexOf(LF); at !== -1; at = chunk.indexOf(LF, start)) {
        hold(chunk.subarray(start, at));
        lines.push(...finish());
        start = at + 1;
      }
      hold(chunk.subarray(start));
      return lines;
    },
    end: (): Line[] => (heldBytes > 0 ? finish() : []),
  };
}
