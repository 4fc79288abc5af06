import { randomUUID } from "node:crypto";
import type { JobContext, JobHandler } from "@conversation-export/queue";
import { ServiceError } from "@conversation-export/runtime";
import type { AuditNote, AuditStore } from "@conversation-export/warehouse";

/** For what jobs does without an operator's own audit entry. */
export const ACTOR = "jobs";

/** Without the first audit entry a job does not begin; without the second it is repeated. */
export const noted = <Data extends object, Result, State>(
  handler: JobHandler<Data, Result, State>,
  audit: Pick<AuditStore, "note">,
  isNoted: (data: Data) => boolean,
): JobHandler<Data, Result, State> => ({
  ...handler,
  run: async (context: JobContext<Data, State>) => {
    const { id, data, log } = context;
    if (!isNoted(data)) return handler.run(context);
    // Attempt numbers recur after a stop, a stall or a manual retry.
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
