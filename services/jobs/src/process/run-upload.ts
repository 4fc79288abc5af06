import type { Micros } from "@conversation-export/domain";
import { isRetryable, retry } from "@conversation-export/runtime";
import type { RunUpload, WriteTicket } from "@conversation-export/warehouse";
import type { PendingWrites } from "./pending-writes.ts";

const RETRY_MS = 60_000;

/** Runs statements that write rows with an instant of upload by themselves. */
export const createRunUpload = (deps: {
  readonly gate: {
    readonly untilOpen: (signal: AbortSignal) => Promise<WriteTicket>;
    readonly uploadTime: () => Micros;
  };
  readonly pending: Pick<PendingWrites, "run">;
}): RunUpload => {
  const { gate, pending } = deps;
  const never = new AbortController().signal;
  return (work, signal = never) =>
    retry(
      async () => {
        const ticket = await gate.untilOpen(signal);
        const uploadedAt = gate.uploadTime();
        await pending.run(uploadedAt, () => work({ ...ticket, uploadedAt }));
      },
      { signal, deadlineMs: RETRY_MS, retryable: isRetryable },
    );
};
