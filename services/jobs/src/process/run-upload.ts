import { isRetryable, retry } from "@conversation-export/runtime";
import type { Ticket } from "@conversation-export/suppression";
import type { InFlight, RunUpload } from "@conversation-export/warehouse";

const RETRY_MS = 60_000;

/** Runs statements that write rows with a stamp by themselves. */
export const createRunUpload = (deps: {
  readonly gate: { readonly ticket: (signal?: AbortSignal) => Promise<Ticket> };
  readonly inFlight: Pick<InFlight, "begin">;
}): RunUpload => {
  const never = new AbortController().signal;
  return (work, signal = never) =>
    retry(
      async () => {
        const ticket = await deps.gate.ticket(signal);
        const flight = deps.inFlight.begin(ticket.stamp);
        try {
          await flight.tell();
          await work(ticket);
        } finally {
          flight.end();
        }
      },
      {
        signal,
        deadlineMs: RETRY_MS,
        retryable: isRetryable,
      },
    );
};
