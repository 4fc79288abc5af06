import { text } from "node:stream/consumers";
import type { OpenStep } from "@conversation-export/warehouse";
import { readParts } from "../outside/parquet-file.ts";

export const idsOf = (records: readonly string[]): string[] =>
  records.map((record) => (JSON.parse(record) as { _id: string })._id);

export const parquetFrom = async (open: OpenStep): Promise<string[]> =>
  (await readParts(open)).rows.map((row) => JSON.stringify(row));

export const stepsOfLines = async (open: OpenStep): Promise<string[][]> => {
  const steps: string[][] = [];
  for (let next: OpenStep | null = open; next !== null; ) {
    const step: Awaited<ReturnType<OpenStep>> = await next(new AbortController().signal);
    const lines = (await text(step.bytes)).split("\n");
    if (lines.pop() !== "") throw new Error("text behind the last line");
    steps.push(lines);
    next = step.next;
  }
  return steps;
};

export const linesFrom = async (open: OpenStep): Promise<string[]> => (await stepsOfLines(open)).flat();
