import { type Context, trace } from "@opentelemetry/api";
import { type Sampler, SamplingDecision, type SamplingResult } from "@opentelemetry/sdk-trace";
import { isSampled } from "./spans.ts";

/** How many of the sampled traces that other processes began are recorded. */
export type ForeignTraces = "all" | { readonly perSecond: number };

const YES: SamplingResult = { decision: SamplingDecision.RECORD_AND_SAMPLED };
const NO: SamplingResult = { decision: SamplingDecision.NOT_RECORD };

/** A token bucket: gains `perSecond` tokens a second and holds at most as many. */
const createBudget = ({ perSecond }: { readonly perSecond: number }, now: () => number): (() => boolean) => {
  let left = perSecond;
  let last = now();
  return () => {
    const at = now();
    left = Math.min(perSecond, left + ((at - last) / 1000) * perSecond);
    last = at;
    if (left < 1) return false;
    left -= 1;
    return true;
  };
};

/**
 * A local parent decides for its children, a sampled remote parent as far as `foreign` allows; others by
 * chance, since callers may choose trace ids.
 * @param deps.ratio share of the traces sampled by chance, 0 to 1
 * @param deps.now milliseconds of a monotonic clock
 * @param deps.random at least 0, less than 1
 */
export const createTraceSampler = (deps: {
  readonly ratio: number;
  readonly foreign: ForeignTraces;
  readonly now: () => number;
  readonly random: () => number;
}): Sampler => {
  const { ratio, foreign, now, random } = deps;
  const admits = foreign === "all" ? () => true : createBudget(foreign, now);
  return {
    shouldSample: (around: Context) => {
      const parent = trace.getSpanContext(around);
      if (parent !== undefined && parent.isRemote !== true) return isSampled(parent) ? YES : NO;
      if (parent !== undefined && isSampled(parent) && admits()) return YES;
      return random() < ratio ? YES : NO;
    },
    toString: () => `conversation-export{${ratio}}`,
  };
};
