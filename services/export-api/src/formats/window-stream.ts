import { Readable } from "node:stream";
import { retry } from "@conversation-export/runtime";
import type { ListStep, OpenStep } from "@conversation-export/warehouse";
import type { AccessMonitor } from "../admission/access-monitor.ts";

export type Join = {
  pass(chunk: Buffer): Buffer;
  /** @throws ServiceError when the step was not whole */
  endStep(): void;
  end(): Buffer;
  count(): number;
};

const RETRY_DEADLINE_MS = 15_000;
const NEWLINE = 10;

const countLines = (chunk: Buffer): number => {
  let count = 0;
  for (let at = chunk.indexOf(NEWLINE); at !== -1; at = chunk.indexOf(NEWLINE, at + 1)) count += 1;
  return count;
};

const NOTHING = Buffer.alloc(0);

/** Each step ends with a newline. */
export const joinLines = (): Join => {
  let count = 0;
  return {
    pass: (chunk) => {
      count += countLines(chunk);
      return chunk;
    },
    endStep: () => {},
    end: () => NOTHING,
    count: () => count,
  };
};

/** Opens one step ahead, after an access check; fails when a step is not whole. */
export const openWindow = async (
  open: OpenStep,
  { signal, access }: { readonly signal: AbortSignal; readonly access: Pick<AccessMonitor, "check"> },
  join: Join,
): Promise<Readable> => {
  const ended = new AbortController();
  const either = AbortSignal.any([signal, ended.signal]);

  const openUnlessEnded = async (step: OpenStep): Promise<ListStep> => {
    await access.check();
    const opened = await step(either);
    // The caller may have gone meanwhile.
    if (either.aborted) opened.bytes.destroy();
    return opened;
  };
  const openAgain = (step: OpenStep): Promise<ListStep> =>
    retry(() => openUnlessEnded(step), { signal: either, deadlineMs: RETRY_DEADLINE_MS });

  const joined = async function* (first: ListStep): AsyncGenerator<Buffer> {
    let step: ListStep | undefined = first;
    let following: Promise<ListStep> | undefined;
    try {
      while (step !== undefined) {
        const { next }: ListStep = step;
        following = next === null ? undefined : openAgain(next);
        // It may fail before it is awaited, which would end the process.
        following?.catch(() => undefined);
        for await (const chunk of step.bytes as AsyncIterable<Buffer>) {
          const ready = join.pass(chunk);
          if (ready.length > 0) yield ready;
        }
        join.endStep();
        step = await following;
        // ClickHouse drops queries left unread; nothing of it was sent.
        if (step?.bytes.destroyed === true && next !== null) step = await openAgain(next);
      }
      const last = join.end();
      if (last.length > 0) yield last;
    } finally {
      ended.abort();
      void following?.then(
        (opened) => opened.bytes.destroy(),
        () => undefined,
      );
    }
  };

  const first = await openUnlessEnded(open);
  // Not in object mode: the high-water mark counts bytes.
  const records = Readable.from(joined(first), { objectMode: false, highWaterMark: 256 * 1024 });
  records.once("close", () => {
    ended.abort();
    first.bytes.destroy();
  });
  return records;
};
