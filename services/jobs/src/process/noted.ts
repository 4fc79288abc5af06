import { randomUUID } from "node:crypto";
import type { JobContext, JobHandler } from "@conversation-export/queue";
import { ServiceError } from "@conversation-export/runtime";
import type { AuditNote, AuditStore } from "@conversation-export/warehouse";

/** The `actor` of what jobs does by itself, or for an operator whose command has a note of its own. */
export const ACTOR = "jobs";

/**
 * A job whose attempts are audited before and after; without the entry before it does not begin, without the
 * one after it is repeated.
 * @param isNoted false: this run changes nothing
 */
export const noted = <Data extends object, Result, State>(
  handler: JobHandler<Data, Result, State>,
  audit: Pick<AuditStore, "note">,
  isNoted: (data: Data) => boolean,
): JobHandler<Data, Result, State> => ({
  ...handler,
  run: async (context: JobContext<Data, State>) => {
    const { id, data, log } = context;
    if (!isNoted(data)) return handler.run(context);
    // The number of an attempt comes again after a stop, a stall, and a retry by hand.
    const runId = `${id} ${randomUUID()}`;
    const note = (state: AuditNote["state"], result = ""): Promise<void> =>
      audit.note([
        {
          runId,
          state,
          actor: ACTOR,
          command: `${handler.type.name} run`,
          arguments: { job: id, ...data },
          result,
        },
      ]);
    await note("begun");
    let result: Result;
    try {
      result = await handler.run(context);
    } catch (error) {
      await note("failed", error instanceof ServiceError ? error.code : "bug").catch((failure: unknown) =>
        log.warn({ err: failure }, "writing the end of a run to the audit failed"),
      );
      throw error;
    }
    await note("done");
    return result;
  },
});
