import { z } from "zod";
import type { JobType } from "./job.ts";

const instant = z.iso.datetime();

const compactData = z.object({
  /** By upload time, `to` exclusive; null: all due. */
  range: z.object({ from: instant, to: instant }).nullable(),
  force: z.boolean(),
  dryRun: z.boolean(),
});
export type CompactData = z.infer<typeof compactData>;

const compactResult = z.object({
  dryRun: z.boolean(),
  windows: z.int(),
  /** This run took long enough. */
  waitingWindows: z.int(),
  openWindows: z.int(),
  supersededUpdates: z.int(),
});
export type CompactResult = z.infer<typeof compactResult>;

export const compactJob: JobType<CompactData, CompactResult> = {
  name: "compact",
  data: compactData,
  result: compactResult,
};
