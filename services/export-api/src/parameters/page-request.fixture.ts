import { parseTimestamp } from "@conversation-export/domain";
import type { PageRequest, PageRequestResult } from "./window-parameters.ts";

export const micros = (text: string): number => parseTimestamp(text) ?? Number.NaN;

export const requestOf = (result: PageRequestResult): PageRequest => {
  if ("problems" in result) throw new Error(result.problems.join("; "));
  return result.request;
};

export const problemsOf = (result: PageRequestResult): readonly string[] => {
  if (!("problems" in result)) throw new Error("expected problems");
  return result.problems;
};
