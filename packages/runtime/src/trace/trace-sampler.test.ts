import { ROOT_CONTEXT, SpanKind, trace } from "@opentelemetry/api";
import { SamplingDecision } from "@opentelemetry/sdk-trace";
import { describe, expect, it } from "vitest";
import { createTraceSampler, type ForeignTraces } from "./trace-sampler.ts";

const around = (traceFlags: number, isRemote: boolean) =>
  trace.setSpanContext(ROOT_CONTEXT, {
    traceId: "a".repeat(32),
    spanId: "b".repeat(16),
    traceFlags,
    isRemote,
  });

const sampler = (foreign: ForeignTraces, chance: number) => {
  const clock = { now: 0 };
  const made = createTraceSampler({ ratio: 0.5, foreign, now: () => clock.now, random: () => chance });
  const samples = (context: typeof ROOT_CONTEXT): boolean =>
    made.shouldSample(context, "a".repeat(32), "", SpanKind.SERVER, {}, []).decision ===
    SamplingDecision.RECORD_AND_SAMPLED;
  return { clock, samples };
};

describe("createTraceSampler", () => {
  it("follows the span around it, whatever chance says", () => {
    expect(sampler("all", 0.9).samples(around(1, false))).toBe(true);
    expect(sampler("all", 0.1).samples(around(0, false))).toBe(false);
  });

  it("leaves to chance what begins here or comes unsampled", () => {
    for (const context of [ROOT_CONTEXT, around(0, true)]) {
      expect(sampler("all", 0.49).samples(context)).toBe(true);
      expect(sampler("all", 0.5).samples(context)).toBe(false);
    }
  });

  it("follows sampled traces of others, all of them or so many a second", () => {
    const all = sampler("all", 0.9);
    const few = sampler({ perSecond: 2 }, 0.9);
    const ask = ({ samples }: typeof all) => Array.from({ length: 5 }, () => samples(around(1, true)));
    expect(ask(all)).toEqual([true, true, true, true, true]);
    expect(ask(few)).toEqual([true, true, false, false, false]);
    few.clock.now = 500;
    expect(ask(few)).toEqual([true, false, false, false, false]);
    few.clock.now = 60_000;
    expect(ask(few)).toEqual([true, true, false, false, false]);
  });
});
