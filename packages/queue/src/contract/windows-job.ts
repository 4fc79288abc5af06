import { z } from "zod";
import type { JobType } from "./job.ts";

const windowsData = z.object({
  /** Counts these again; null: open and lately closed ones. */
  since: z.iso.datetime().nullable(),
});
export type WindowsData = z.infer<typeof windowsData>;

const windowsResult = z.object({
  counted: z.int(),
  opened: z.int(),
  closed: z.int(),
  reopened: z.int(),
});
export type WindowsResult = z.infer<typeof windowsResult>;

export const windowsJob: JobType<WindowsData, WindowsResult> = {
  name: "windows",
  data: windowsData,
  result: windowsResult,
};
