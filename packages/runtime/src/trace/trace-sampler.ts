import { type Context, trace } from "@opentelemetry/api";
import { type Sampler, SamplingDecision, type SamplingResult } from "@opentelemetry/sdk-trace";
import { isSampled } from "./spans.ts";

/** Of the sampled traces that other processes began. */
export type ForeignTraces = "all" | { readonly perSecond: number };

const YES: SamplingResult = { decision: SamplingDecision.RECORD_AND_SAMPLED };
const NO: SamplingResult = { decision: SamplingDecision.NOT_RECORD };

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

/** A local or an admitted remote parent decides; otherwise chance, since callers may choose trace ids. */
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
