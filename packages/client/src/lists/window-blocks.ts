import type { Retry } from "../http/retry.ts";
import { ExportAnswerError } from "../http/errors.ts";
import { type Block, lineBlocks, parseLine, textsOf, type Trailer } from "./line-blocks.ts";

export type DateField = "date_created" | "date_updated";

export type Place = {
  /** As written. */
  readonly date: string;
  /** Records of this date that came; they will come again. */
  readonly ids: readonly string[];
};

/** `place` grows: copy it to keep it. */
export type PlacedBlock = Block & { readonly place: Place };

type GrowingPlace = { readonly date: string; readonly ids: string[] };

type Dated = { readonly id: string; readonly date: string };
/** Of the fields of a record. */
type Names = { readonly id: string; readonly date: DateField };

const NEWLINE = 10;
const decoder = new TextDecoder();

const readLine = (line: string, names: Names): Dated => {
  const record = parseLine(line) as Readonly<Record<string, unknown>> | null;
  const { [names.id]: id, [names.date]: date } = record ?? {};
  if (typeof id !== "string" || typeof date !== "string") {
    throw new ExportAnswerError(`a line of ${line.length} characters has no ${names.id} or ${names.date}`);
  }
  return { id, date };
};

const lastOf = (bytes: Uint8Array, names: Names): GrowingPlace & { readonly isWhole: boolean } => {
  const ids: string[] = [];
  let date: string | undefined;
  for (let end = bytes.length; end > 0; ) {
    const start = bytes.lastIndexOf(NEWLINE, end - 2) + 1;
    const one = readLine(decoder.decode(bytes.subarray(start, end - 1)), names);
    if (date !== undefined && one.date !== date) return { date, ids, isWhole: false };
    date = one.date;
    ids.push(one.id);
    end = start;
  }
  return { date: date ?? "", ids, isWhole: true };
};

const advance = (before: GrowingPlace | undefined, bytes: Uint8Array, names: Names): GrowingPlace => {
  const { date, ids, isWhole } = lastOf(bytes, names);
  if (!isWhole || before?.date !== date) return { date, ids };
  // Copying would be quadratic.
  for (const id of ids) before.ids.push(id);
  return before;
};

const dropKnown = (
  block: Block,
  place: { readonly date: string; readonly ids: ReadonlySet<string> },
  names: Names,
): { block: Block; isPast: boolean } => {
  const texts = textsOf(block.bytes);
  let isPast = false;
  const kept = texts.filter((text) => {
    if (isPast) return true;
    const { id, date } = readLine(text, names);
    isPast = date !== place.date;
    return isPast || !place.ids.has(id);
  });
  if (kept.length === texts.length) return { block, isPast };
  const bytes = new TextEncoder().encode(kept.map((text) => `${text}\n`).join(""));
  return { block: { bytes, lines: kept.length }, isPast };
};

/** Resumed after breaks: each record comes once that does not change meanwhile. @throws ExportApiError, ExportConnectionError, ExportAnswerError */
export async function* windowBlocks(deps: {
  readonly open: (since: string | undefined) => Promise<AsyncGenerator<Uint8Array, void>>;
  readonly retry: Retry;
  readonly names: Names;
  readonly place?: Place | undefined;
}): AsyncGenerator<PlacedBlock, Trailer> {
  const { open, retry, names } = deps;
  let place = deps.place === undefined ? undefined : { ...deps.place, ids: [...deps.place.ids] };
  for (let failures = 0; ; ) {
    const known = place && { date: place.date, ids: new Set(place.ids) };
    let isPast = known === undefined;
    const blocks = lineBlocks(await open(known?.date));
    try {
      for (;;) {
        const next = await blocks.next();
        if (next.done === true) return next.value;
        let block = next.value;
        if (!isPast && known !== undefined) ({ block, isPast } = dropKnown(block, known, names));
        if (block.lines === 0) continue;
        failures = 0;
        place = advance(place, block.bytes, names);
        yield { ...block, place };
      }
    } catch (error) {
      failures += 1;
      await retry.wait(error, failures);
    } finally {
      await blocks.return(undefined as never);
    }
  }
}
