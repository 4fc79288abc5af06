import { z } from "zod";
import type { JobType } from "./job.ts";

const windowsData = z.object({
  /** Windows from here on are counted again; null: open windows and those that closed last. */
  since: z.iso.datetime().nullable(),
});
export type WindowsData = z.infer<typeof windowsData>;

const windowsResult = z.object({
  /** Windows, not rows of the ledger. */
  counted: z.int(),
  opened: z.int(),
  closed: z.int(),
  reopened: z.int(),
});
export type WindowsResult = z.infer<typeof windowsResult>;

/** Counts the upload windows from the tables, and opens and closes them. */
export const windowsJob: JobType<WindowsData, WindowsResult> = {
  name: "windows",
  data: windowsData,
  result: windowsResult,
};
