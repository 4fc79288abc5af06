import {
  type JobHandler,
  retentionJob,
  type RetentionData,
  type RetentionResult,
} from "@conversation-export/queue";
import { ServiceError } from "@conversation-export/runtime";
import type { AuditNote } from "@conversation-export/warehouse";
import { expect, it } from "vitest";
import { jobContext } from "../job-context.fixture.ts";
import { noted } from "./noted.ts";

type Handler = JobHandler<RetentionData, RetentionResult>;

const done = (): Promise<RetentionResult> => Promise.resolve({ dryRun: false, clients: [], tables: [] });

const run = async (work: Handler["run"], dryRun = false, store: (note: AuditNote) => void = () => {}) => {
  const said: string[] = [];
  const runIds: string[] = [];
  const audit = {
    note: (notes: readonly AuditNote[]) => {
      for (const note of notes) {
        store(note);
        runIds.push(note.runId);
        said.push(
          `${note.runId.split(" ")[0]} ${note.actor} ${note.command} ${note.state} ${note.result}`.trim(),
        );
      }
      return Promise.resolve();
    },
  };
  const handler: Handler = {
    type: retentionJob,
    run: (context) => {
      said.push("work");
      return work(context);
    },
  };
  const context = jobContext<RetentionData>({ clientId: "acme", dryRun }, { id: "retention-7", attempt: 2 });
  const ended = await noted(handler, audit, (data) => !data.dryRun)
    .run(context)
    .then(
      () => "ended",
      (error: unknown) => String(error),
    );
  return { said, ended, runIds };
};

it("notes a run before and after, and none that changes nothing", async () => {
  expect(await run(done)).toMatchObject({
    said: ["retention-7 jobs retention run begun", "work", "retention-7 jobs retention run done"],
    ended: "ended",
  });
  expect(await run(done, true)).toEqual({ said: ["work"], ended: "ended", runIds: [] });
});

it("tells a run apart from one before it of the same attempt, which a stop does not count", async () => {
  const stopped = await run(() => Promise.reject(new ServiceError("stopping", "the process stops")));
  const after = await run(done);
  expect(new Set(stopped.runIds).size).toBe(1);
  expect(new Set(after.runIds).size).toBe(1);
  expect(after.runIds[0]).not.toBe(stopped.runIds[0]);
});

it("notes the code of a failure, and no message, which may hold names", async () => {
  const fail = () => Promise.reject(new ServiceError("clock_ahead", "the clock of jane is ahead"));
  expect(await run(fail)).toMatchObject({
    said: [
      "retention-7 jobs retention run begun",
      "work",
      "retention-7 jobs retention run failed clock_ahead",
    ],
    ended: expect.stringContaining("the clock"),
  });
});

it("does not begin what cannot be noted, and repeats what cannot be noted at its end", async () => {
  const away = (state: AuditNote["state"]) => (note: AuditNote) => {
    if (note.state === state) throw new Error("ClickHouse is away");
  };
  expect(await run(done, false, away("begun"))).toMatchObject({
    said: [],
    ended: "Error: ClickHouse is away",
  });
  expect(await run(done, false, away("done"))).toMatchObject({ ended: "Error: ClickHouse is away" });
});
