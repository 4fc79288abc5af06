import { isRetryable, retry } from "@conversation-export/runtime";
import type { SuppressionGate } from "@conversation-export/suppression";
import type { InFlight, RunUpload } from "@conversation-export/warehouse";

const RETRY_MS = 60_000;

export const createRunUpload = (deps: {
  readonly gate: Pick<SuppressionGate, "ticket">;
  readonly inFlight: Pick<InFlight, "during">;
}): RunUpload => {
  const never = new AbortController().signal;
  return (work, signal = never) =>
    retry(
      async () => {
        const ticket = await deps.gate.ticket(signal);
        await deps.inFlight.during(ticket.stamp, true, () => work(ticket));
      },
      { signal, deadlineMs: RETRY_MS, retryable: isRetryable },
    );
};
