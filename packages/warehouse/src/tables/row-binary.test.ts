import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { RowBinary } from "./row-binary.ts";

/** Independent of the writer. */
function createDecoder(bytes: Buffer) {
  let at = 0;
  const varUint = (): number => {
    let value = 0;
    for (let factor = 1; ; factor *= 128) {
      const byte = bytes.readUInt8(at);
      at += 1;
      value += (byte & 0x7f) * factor;
      if (byte < 0x80) return value;
    }
  };
  return {
    varUint,
    uint8: () => bytes.readUInt8(at++),
    uint16: () => bytes.readUInt16LE((at += 2) - 2),
    uint64: () => bytes.readBigUInt64LE((at += 8) - 8),
    float64: () => bytes.readDoubleLE((at += 8) - 8),
    string(): string {
      const size = varUint();
      at += size;
      return bytes.toString("utf8", at - size, at);
    },
    isAtEnd: () => at === bytes.length,
  };
}

function written(write: (row: RowBinary) => void, initialBytes = 0) {
  const row = new RowBinary(initialBytes);
  write(row);
  return { decoder: createDecoder(row.view(0, row.length)), row };
}

const text = fc.oneof(
  fc.string({ unit: "binary", maxLength: 60 }),
  fc.constantFrom(
    ...[0, 1, 41, 42, 43, 63, 64, 126, 127, 128, 16_383, 16_384].flatMap((size) => [
      "x".repeat(size),
      "é".repeat(size),
      "ｚ".repeat(size),
      "😀".repeat(size),
    ]),
  ),
);

describe("RowBinary", () => {
  it("writes strings of any length and alphabet, for any initial size of the buffer", () => {
    fc.assert(
      fc.property(
        fc.array(text, { maxLength: 6 }),
        fc.integer({ min: 0, max: 200 }),
        (texts, initialBytes) => {
          const { decoder } = written((row) => {
            for (const one of texts) {
              row.string(one);
              row.nullableString(one);
            }
            row.nullableString(null);
          }, initialBytes);
          for (const one of texts) {
            expect(decoder.string()).toBe(one);
            expect(decoder.uint8()).toBe(0);
            expect(decoder.string()).toBe(one);
          }
          expect(decoder.uint8()).toBe(1);
          expect(decoder.isAtEnd()).toBe(true);
        },
      ),
    );
  });

  it("writes lengths in as few bytes as ClickHouse does", () => {
    fc.assert(
      fc.property(text, text, (before, after) => {
        const row = new RowBinary(0);
        row.string(before);
        row.stringWithHole(before, 3, after);
        const [size, other] = [before, after].map((one) => Buffer.byteLength(one)) as [number, number];
        const sizes = [size, size + other + 3];
        const bytes = sizes.map((one) => one + Math.ceil(Math.max(1, one.toString(2).length) / 7));
        expect(row.length).toBe(bytes.reduce((sum, size) => sum + size));
      }),
    );
  });

  it("writes a lone surrogate as the replacement character, short or long", () => {
    for (const one of ["\ud800", `${"x".repeat(60)}\udc00`]) {
      const { decoder } = written((row) => row.string(one));
      expect(decoder.string()).toBe(one.toWellFormed());
      expect(decoder.isAtEnd()).toBe(true);
    }
  });

  it("writes whole numbers up to 2^53 - 1", () => {
    const whole = fc.oneof(
      fc.maxSafeNat(),
      fc.constantFrom(0, 255, 2 ** 32 - 1, 2 ** 32, 2 ** 32 + 1, 2 ** 53 - 1),
    );
    fc.assert(
      fc.property(whole, whole, (a, b) => {
        const { decoder, row } = written((row) => {
          row.uint64(a);
          row.uint64(0);
        });
        expect(decoder.uint64()).toBe(BigInt(a));
        row.fillUint64(8, b);
        expect(decoder.uint64()).toBe(BigInt(b));
      }),
    );
  });

  it("writes a bus position as partition << 48 | offset", () => {
    const partition = fc.integer({ min: 0, max: 65_535 });
    const offset = fc.oneof(
      fc.integer({ min: 0, max: 2 ** 48 - 1 }),
      fc.constantFrom(0, 2 ** 32 - 1, 2 ** 32, 2 ** 48 - 1),
    );
    fc.assert(
      fc.property(partition, offset, (partition, offset) => {
        const { decoder } = written((row) => row.busPosition(partition, offset));
        expect(decoder.uint64()).toBe((BigInt(partition) << 48n) | BigInt(offset));
      }),
    );
  });

  it("writes raw bytes, and two-byte numbers at once or later", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300 }), fc.nat(0xffff), fc.nat(0xffff), (bytes, a, b) => {
        const { decoder, row } = written((row) => {
          row.uint16(a);
          row.uint16(0);
          row.stringOfBytes(bytes);
        });
        row.fillUint16(2, b);
        expect([decoder.uint16(), decoder.uint16()]).toEqual([a, b]);
        const size = decoder.varUint();
        expect(Buffer.compare(row.view(row.length - size, row.length), bytes)).toBe(0);
        expect(size).toBe(bytes.length);
      }),
    );
  });

  it("writes lengths, floats and nullable values", () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 2 ** 31 - 1 }), fc.double(), (length, float) => {
        const { decoder } = written((row) => {
          row.varUint(length);
          row.nullableFloat64(float);
          row.nullableFloat64(null);
          row.nullableUint8(true);
          row.nullableUint8(false);
          row.nullableUint8(5);
          row.nullableUint8(null);
        });
        expect(decoder.varUint()).toBe(length);
        expect(decoder.uint8()).toBe(0);
        expect(decoder.float64()).toBe(float);
        expect([1, 2, 3, 4, 5, 6, 7, 8].map(() => decoder.uint8())).toEqual([1, 0, 1, 0, 0, 0, 5, 1]);
        expect(decoder.isAtEnd()).toBe(true);
      }),
    );
  });

  it("fills a hole in a string", () => {
    fc.assert(
      fc.property(text, text, text, (before, after, earlier) => {
        const source = new RowBinary(0);
        source.string(earlier);
        const start = source.length;
        const hole = source.stringWithHole(before, 3, after);
        source.string("end");
        source.fillBytes(hole, Buffer.from("xyz"));
        const original = createDecoder(source.view(start, source.length));
        expect([original.string(), original.string()]).toEqual([`${before}xyz${after}`, "end"]);
      }),
    );
  });
});
