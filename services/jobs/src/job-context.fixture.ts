import type { JobContext } from "@conversation-export/queue";
import { createLogger } from "@conversation-export/runtime";

export const jobContext = <Data, State = never>(
  data: Data,
  more: Partial<JobContext<Data, State>> = {},
): JobContext<Data, State> => ({
  id: "job",
  data,
  attempt: 1,
  signal: new AbortController().signal,
  log: createLogger({ service: "test", level: "silent" }),
  state: undefined,
  save: () => Promise.resolve(),
  progress: () => Promise.resolve(),
  ...more,
});
