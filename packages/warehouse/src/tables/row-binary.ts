/** Below 2^28. */
const bytesOf = (length: number): number =>
  length < 0x80 ? 1 : length < 0x4000 ? 2 : length < 0x20_0000 ? 3 : 4;
const MAX_BYTES = 4;

const BLANK = 0x20;

export class RowBinary {
  #bytes: Buffer;
  #view: DataView;
  #length = 0;

  constructor(initialBytes: number) {
    this.#bytes = Buffer.allocUnsafeSlow(initialBytes);
    this.#view = new DataView(this.#bytes.buffer);
  }

  get capacity(): number {
    return this.#bytes.length;
  }

  clear(): void {
    this.#length = 0;
  }

  get length(): number {
    return this.#length;
  }

  #reserve(size: number): number {
    const at = this.#length;
    const needed = at + size;
    if (needed > this.#bytes.length) {
      const larger = Buffer.allocUnsafeSlow(Math.max(needed, this.#bytes.length * 2));
      this.#bytes.copy(larger, 0, 0, at);
      this.#bytes = larger;
      this.#view = new DataView(larger.buffer);
    }
    this.#length = needed;
    return at;
  }

  uint8(value: number): void {
    const at = this.#reserve(1);
    this.#bytes[at] = value;
  }

  uint16(value: number): void {
    const at = this.#reserve(2);
    this.#view.setUint16(at, value, true);
  }

  float64(value: number): void {
    const at = this.#reserve(8);
    this.#view.setFloat64(at, value, true);
  }

  /** Up to 2^53 - 1. */
  uint64(value: number): void {
    const at = this.#reserve(8);
    this.#view.setUint32(at, value % 0x1_0000_0000, true);
    this.#view.setUint32(at + 4, Math.floor(value / 0x1_0000_0000), true);
  }

  /** `partition` << 48 | `offset` */
  busPosition(partition: number, offset: number): void {
    const at = this.#reserve(8);
    this.#view.setUint32(at, offset % 0x1_0000_0000, true);
    this.#view.setUint16(at + 4, Math.floor(offset / 0x1_0000_0000), true);
    this.#view.setUint16(at + 6, partition, true);
  }

  nullableFloat64(value: number | null): void {
    if (value === null) return this.uint8(1);
    this.uint8(0);
    this.float64(value);
  }

  nullableUint8(value: number | boolean | null): void {
    if (value === null) return this.uint8(1);
    this.uint8(0);
    this.uint8(Number(value));
  }

  #shortAscii(text: string): boolean {
    const { length } = text;
    const at = this.#reserve(1 + length);
    const bytes = this.#bytes;
    for (let index = 0; index < length; index += 1) {
      const code = text.charCodeAt(index);
      if (code > 0x7f) {
        this.#length = at;
        return false;
      }
      bytes[at + 1 + index] = code;
    }
    bytes[at] = length;
    return true;
  }

  varUint(value: number): void {
    let rest = value;
    while (rest >= 0x80) {
      this.uint8((rest & 0x7f) | 0x80);
      rest >>>= 7;
    }
    this.uint8(rest);
  }

  string(text: string): void {
    // Most texts are short and ASCII: a loop is faster than Buffer.write.
    if (text.length < 0x80 && this.#shortAscii(text)) return;
    // A UTF-16 unit takes at most 3 bytes; the rest is released below.
    const at = this.#reserve(MAX_BYTES + text.length * 3);
    const room = bytesOf(text.length);
    this.#endString(at, room, this.#bytes.write(text, at + room));
  }

  stringOfBytes(bytes: Uint8Array): void {
    this.varUint(bytes.length);
    const at = this.#reserve(bytes.length);
    this.#bytes.set(bytes, at);
  }

  /** Writes the length, and moves the string if that does not take `room` bytes; returns by how many. */
  #endString(at: number, room: number, size: number): number {
    const bytes = bytesOf(size);
    if (bytes !== room) this.#bytes.copyWithin(at + bytes, at + room, at + room + size);
    this.#length = at;
    this.varUint(size);
    this.#length += size;
    return bytes - room;
  }

  nullableString(text: string | null): void {
    if (text === null) return this.uint8(1);
    this.uint8(0);
    this.string(text);
  }

  /** Returns the offset of `hole` bytes to fill later. */
  stringWithHole(before: string, hole: number, after: string): number {
    const at = this.#reserve(MAX_BYTES + hole + (before.length + after.length) * 3);
    const room = bytesOf(before.length + hole + after.length);
    const holeAt = at + room + this.#bytes.write(before, at + room);
    // Calling Buffer.fill takes longer.
    for (let index = holeAt; index < holeAt + hole; index += 1) this.#bytes[index] = BLANK;
    const end = holeAt + hole + this.#bytes.write(after, holeAt + hole);
    return holeAt + this.#endString(at, room, end - at - room);
  }

  fillBytes(at: number, bytes: Uint8Array): void {
    this.#bytes.set(bytes, at);
  }

  fillUint64(at: number, value: number): void {
    this.#view.setUint32(at, value % 0x1_0000_0000, true);
    this.#view.setUint32(at + 4, Math.floor(value / 0x1_0000_0000), true);
  }

  fillUint16(at: number, value: number): void {
    this.#view.setUint16(at, value, true);
  }

  /** Valid until the next write. */
  view(start: number, end: number): Buffer {
    return this.#bytes.subarray(start, end);
  }
}
