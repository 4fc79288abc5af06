import { Readable } from "node:stream";
import { text } from "node:stream/consumers";
import { ServiceError } from "@conversation-export/runtime";
import type { OpenStep } from "@conversation-export/warehouse";
import { describe, expect, it } from "vitest";
import { joinLines, openWindow } from "./window-stream.ts";

const NEVER = new AbortController().signal;
const CALL = { signal: NEVER, access: { check: () => Promise.resolve() } };
const LINES = '{"_id":"a"}\n{"_id":"b"}\n{"_id":"c"}\n{"_id":"d"}\n{"_id":"e"}\n';

const stepsOf = (parts: readonly string[]) => {
  const opened: Readable[] = [];
  const signals: AbortSignal[] = [];
  const from =
    (index: number): OpenStep =>
    (signal) => {
      signals.push(signal);
      const lines = Readable.from([Buffer.from(parts[index] ?? "")]);
      opened.push(lines);
      return Promise.resolve({ bytes: lines, next: index + 1 < parts.length ? from(index + 1) : null });
    };
  return { opened, signals, first: from(0) };
};

describe("a window", () => {
  it("is its steps in a row, with its lines counted", async () => {
    const { first } = stepsOf([LINES.slice(0, 24), "", LINES.slice(24)]);
    const join = joinLines();
    expect(await text(await openWindow(first, CALL, join))).toBe(LINES);
    expect(join.count()).toBe(5);
  });

  it("counts lines that are cut anywhere", async () => {
    const chunks = [LINES.slice(0, 5), LINES.slice(5, 12), LINES.slice(12, 13), LINES.slice(13)];
    const lines = Readable.from(chunks.map((chunk) => Buffer.from(chunk)));
    const join = joinLines();
    const window = await openWindow(() => Promise.resolve({ bytes: lines, next: null }), CALL, join);
    expect(await text(window)).toBe(LINES);
    expect(join.count()).toBe(5);
  });

  it("opens a step again that fails for a moment", async () => {
    const { first: last } = stepsOf([LINES.slice(12)]);
    let failures = 2;
    const flaky: OpenStep = (signal) =>
      failures-- > 0
        ? Promise.reject(new ServiceError("warehouse_unavailable", "away", { retryable: true }))
        : last(signal);
    const window = await openWindow(
      () => Promise.resolve({ bytes: Readable.from([Buffer.from(LINES.slice(0, 12))]), next: flaky }),
      CALL,
      joinLines(),
    );
    expect(await text(window)).toBe(LINES);
  });

  it("opens a step again that broke while the one before it was read", async () => {
    const first = new Readable({ read() {} });
    const opened: Readable[] = [];
    const second: OpenStep = () => {
      const lines = Readable.from([Buffer.from(LINES.slice(12))]);
      opened.push(lines);
      return Promise.resolve({ bytes: lines, next: null });
    };
    const window = await openWindow(() => Promise.resolve({ bytes: first, next: second }), CALL, joinLines());
    const all = text(window);
    await expect.poll(() => opened.length).toBe(1);
    opened[0]?.on("error", () => {}).destroy(new Error("timed out while nobody read"));
    first.push(LINES.slice(0, 12));
    first.push(null);
    expect(await all).toBe(LINES);
    expect(opened).toHaveLength(2);
  });

  it("rejects when the first step fails, and breaks when a later one does for good", async () => {
    const bug = new Error("a bug");
    const broken: OpenStep = () => Promise.reject(bug);
    await expect(openWindow(broken, CALL, joinLines())).rejects.toBe(bug);
    const lines = Readable.from([Buffer.from(LINES)]);
    const window = await openWindow(() => Promise.resolve({ bytes: lines, next: broken }), CALL, joinLines());
    await expect(text(window)).rejects.toBe(bug);
  });

  it("breaks when the records of a step do", async () => {
    const lines = new Readable({
      read() {
        this.destroy(new Error("midway"));
      },
    });
    const window = await openWindow(() => Promise.resolve({ bytes: lines, next: null }), CALL, joinLines());
    await expect(text(window)).rejects.toThrow("midway");
  });

  it("opens no step that the caller may no longer read", async () => {
    const { first, opened } = stepsOf([LINES, LINES, LINES, LINES]);
    const refused = new Error("the key was revoked");
    let checks = 0;
    const check = async (): Promise<void> => {
      checks += 1;
      if (checks > 2) throw refused;
    };
    const window = await openWindow(first, { signal: NEVER, access: { check } }, joinLines());
    await expect(text(window)).rejects.toBe(refused);
    expect(opened).toHaveLength(2);
    await expect(openWindow(first, { signal: NEVER, access: { check } }, joinLines())).rejects.toBe(refused);
    expect(opened).toHaveLength(2);
  });

  it("cancels the step that is read and the one that was opened when nobody reads on", async () => {
    const { first, opened, signals } = stepsOf([LINES, LINES, LINES]);
    const window = await openWindow(first, CALL, joinLines());
    const reading = window[Symbol.asyncIterator]();
    await reading.next();
    await reading.return?.();
    await expect.poll(() => opened.every((lines) => lines.destroyed)).toBe(true);
    expect(opened.length).toBeGreaterThan(1);
    expect(signals.every(({ aborted }) => aborted)).toBe(true);
  });
});
