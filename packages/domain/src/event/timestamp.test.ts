import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  END_OF_TIME,
  formatTimestamp,
  formatTimestampZ,
  isAcceptedInstant,
  MIN_INSTANT,
  monthOf,
  parseTimestamp,
} from "./timestamp.ts";

const accepted = fc.integer({ min: MIN_INSTANT, max: END_OF_TIME - 1 });

/** Independent of the code under test. */
function oracleText(instant: number): string {
  const micros = BigInt(instant);
  const second = new Date(Number(micros / 1_000_000n) * 1000).toISOString().slice(0, 19);
  return `${second}.${String(micros % 1_000_000n).padStart(6, "0")}`;
}

describe("formatTimestamp", () => {
  it("agrees with Date, to the microsecond", () => {
    fc.assert(
      fc.property(accepted, (instant) => {
        expect(formatTimestamp(instant)).toBe(`${oracleText(instant)}+00:00`);
        expect(formatTimestampZ(instant)).toBe(`${oracleText(instant)}Z`);
        expect(formatTimestamp(instant)).toHaveLength(32);
      }),
    );
  });

  it.each([
    [0, "1970-01-01T00:00:00.000000+00:00"],
    [1, "1970-01-01T00:00:00.000001+00:00"],
    [86_399_999_999, "1970-01-01T23:59:59.999999+00:00"],
    [86_400_000_000, "1970-01-02T00:00:00.000000+00:00"],
    [951_782_400_000_000, "2000-02-29T00:00:00.000000+00:00"],
    [END_OF_TIME - 1, "2105-12-31T23:59:59.999999+00:00"],
  ])("%d", (instant, text) => {
    expect(formatTimestamp(instant)).toBe(text);
  });

  it("has no memory of the day before", () => {
    fc.assert(
      fc.property(fc.array(accepted, { minLength: 2 }), (instants) => {
        const near = instants.flatMap((instant) => [instant, Math.max(0, instant - 86_400_000_000), instant]);
        expect(near.map(formatTimestamp)).toEqual(near.map((instant) => `${oracleText(instant)}+00:00`));
      }),
    );
  });
});

describe("parseTimestamp", () => {
  it("reads back every instant it wrote", () => {
    fc.assert(
      fc.property(accepted, (instant) => {
        expect(parseTimestamp(formatTimestamp(instant))).toBe(instant);
        expect(parseTimestamp(formatTimestampZ(instant))).toBe(instant);
      }),
    );
  });

  it("reads every form: separator, 0 to 9 digits, Z, offset or none, with or without seconds", () => {
    const form = fc.record({
      instant: accepted,
      separator: fc.constantFrom("T", " "),
      digits: fc.integer({ min: 0, max: 9 }),
      tail: fc.stringMatching(/^\d{3}$/),
      point: fc.constantFrom(".", ","),
      seconds: fc.boolean(),
      offset: fc.oneof(
        fc.constantFrom("", "Z", "z"),
        fc.record({
          minutes: fc.integer({ min: -1439, max: 1439 }),
          style: fc.constantFrom("hh", "hhmm", "hh:mm"),
        }),
      ),
    });
    fc.assert(
      fc.property(form, ({ instant, separator, digits, tail, point, seconds, offset }) => {
        const isShift = typeof offset !== "string";
        const minutes = isShift
          ? offset.style === "hh"
            ? Math.trunc(offset.minutes / 60) * 60
            : offset.minutes
          : 0;
        const local = BigInt(instant) + BigInt(minutes) * 60_000_000n;
        fc.pre(local >= 0n);
        const wall = oracleText(Number(local));
        const fraction = `${wall.slice(20)}${tail}`.slice(0, digits);
        const time = seconds ? wall.slice(11, 19) + (digits > 0 ? point + fraction : "") : wall.slice(11, 16);
        const size = Math.abs(minutes);
        const [hh, mm] = [Math.floor(size / 60), size % 60].map((part) => String(part).padStart(2, "0"));
        const shift = isShift
          ? (minutes < 0 ? "-" : "+") + { hh: hh, hhmm: `${hh}${mm}`, "hh:mm": `${hh}:${mm}` }[offset.style]
          : offset;
        const text = wall.slice(0, 10) + separator + time + shift;
        const unit = seconds ? 10n ** BigInt(6 - Math.min(digits, 6)) : 60_000_000n;
        const cut = (local / unit) * unit - BigInt(minutes) * 60_000_000n;
        expect(parseTimestamp(text), text).toBe(Number(cut));
      }),
    );
  });

  it("cuts digits beyond the sixth, never rounds", () => {
    expect(parseTimestamp("1970-01-01T00:00:00.9999999Z")).toBe(999_999);
    expect(parseTimestamp("1970-01-01T00:00:00.000000999Z")).toBe(0);
    expect(parseTimestamp("2026-10-04T12:00:00.123456789+02:00")).toBe(
      parseTimestamp("2026-10-04T10:00:00.123456Z"),
    );
  });

  it("knows which dates exist", () => {
    const part = (max: number): fc.Arbitrary<number> => fc.integer({ min: 0, max });
    fc.assert(
      fc.property(
        part(9999),
        part(14),
        part(33),
        part(25),
        part(61),
        part(61),
        (year, month, day, hour, minute, second) => {
          const two = (value: number): string => String(value).padStart(2, "0");
          const text = `${String(year).padStart(4, "0")}-${two(month)}-${two(day)}T${two(hour)}:${two(minute)}:${two(second)}`;
          const date = new Date(`${text}Z`);
          const exists = !Number.isNaN(date.getTime()) && date.toISOString().slice(0, 19) === text;
          expect(parseTimestamp(text), text).toBe(exists ? date.getTime() * 1000 : undefined);
        },
      ),
      { numRuns: 2000 },
    );
  });

  it.each([
    "",
    "2026-10-04",
    "2026-02-29T00:00:00Z",
    "1900-02-29T00:00:00Z",
    "2026-10-04T24:00:00Z",
    "2026-10-04T23:59:60Z",
    "2026-10-04T00:00:00.Z",
    "2026-10-04T00:00:00.1234567890Z",
    "2026-10-04T00:00Z0",
    "2026-10-04T00:00:00 Z",
    "2026-10-04T00:00:00+24:00",
    "2026-10-04T00:00:00+00:60",
    "2026-10-04T00:00:00+1",
    "2026-10-04t00:00:00Z",
    "20261004T000000Z",
    "+2026-10-04T00:00:00Z",
    "2026-10-04T00:00:00Z\n",
    " 2026-10-04T00:00:00Z",
    "２０２６-10-04T00:00:00Z",
    "1759622400",
  ])("refuses %j", (text) => {
    expect(parseTimestamp(text)).toBeUndefined();
  });
});

describe("the accepted range", () => {
  it.each([
    ["1969-12-31T23:59:59.999999Z", false],
    ["1970-01-01T00:00:00Z", true],
    ["1970-01-01T00:00:00+00:01", false],
    ["1969-12-31T23:59:00-00:01", true],
    ["2105-12-31T23:59:59.999999999Z", true],
    ["2106-01-01T00:00:00Z", false],
    ["2106-01-01T00:30:00+01:00", true],
    ["2105-12-31T23:59:59-00:01", false],
    ["9999-12-31T23:59:59Z", false],
    ["0000-01-01T00:00:00Z", false],
  ])("%s", (text, isAccepted) => {
    const instant = parseTimestamp(text);
    expect(instant).toBeDefined();
    expect(isAcceptedInstant(instant ?? Number.NaN)).toBe(isAccepted);
  });
});

it("monthOf agrees with Date", () => {
  fc.assert(
    fc.property(accepted, (instant) => {
      const date = new Date(Math.floor(instant / 1000));
      expect(monthOf(instant)).toBe(date.getUTCFullYear() * 12 + date.getUTCMonth());
    }),
  );
});
