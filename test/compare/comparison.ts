import { checksum, type ExportedRecord, normaliseExported } from "../reference/index.ts";

export type Compared = {
  readonly expected: { readonly records: number; readonly checksum: string };
  readonly read: { readonly records: number; readonly checksum: string };
  /** Missing, unexpected, repeated, different or out of order. */
  readonly problems: number;
  readonly examples: readonly string[];
};

export type Comparison = {
  take(recordTexts: readonly string[]): void;
  finish(): Compared;
};

const MAX_EXAMPLES = 5;

const partingOf = (expected: string, read: string): string => {
  let at = 0;
  while (at < expected.length && expected[at] === read[at]) at += 1;
  const from = Math.max(0, at - 40);
  return `expected …${expected.slice(from, at + 80)}… read …${read.slice(from, at + 80)}…`;
};

/** Ids must be unique; record_last_updated is ignored. */
export const createComparison = (expected: readonly ExportedRecord[]): Comparison => {
  const waiting = new Map(expected.map((record, index) => [record.id, { record, index }]));
  const examples: string[] = [];
  let problems = 0;
  let records = 0;
  let sum = 0n;
  let lastIndex = -1;

  const note = (example: string): void => {
    problems += 1;
    if (examples.length < MAX_EXAMPLES) examples.push(example);
  };

  const compare = ({ id, json }: ExportedRecord): void => {
    const found = waiting.get(id);
    if (found === undefined) {
      note(`unexpected or repeated: ${id}`);
      return;
    }
    waiting.delete(id);
    if (found.record.json !== json) note(`different: ${id}: ${partingOf(found.record.json, json)}`);
    if (found.index < lastIndex) note(`out of order: ${id}`);
    lastIndex = Math.max(lastIndex, found.index);
  };

  return {
    take: (recordTexts) => {
      const read = recordTexts.map(normaliseExported);
      for (const record of read) compare(record);
      records += read.length;
      sum = BigInt.asUintN(64, sum + BigInt(`0x${checksum(read)}`));
    },
    finish: () => {
      for (const id of waiting.keys()) note(`missing: ${id}`);
      return {
        expected: { records: expected.length, checksum: checksum(expected) },
        read: { records, checksum: sum.toString(16).padStart(16, "0") },
        problems,
        examples,
      };
    },
  };
};
