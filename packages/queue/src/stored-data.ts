/** What a job is in its queue, beside what the queue itself knows. */
export type StoredData = {
  readonly input: unknown;
  /** What the job has saved. */
  readonly state?: unknown;
  /** The parts that a job was split into. */
  readonly plan?: readonly unknown[];
  /** Set while the parts of `plan` run. */
  readonly waiting?: boolean;
  /** Of a part: the job that it belongs to, and its place in the plan. */
  readonly parent?: { readonly id: string; readonly index: number };
};

/** Also takes a job whose data is the bare input, as other programs may add them. */
export const readStoredData = (data: unknown): StoredData =>
  typeof data === "object" && data !== null && "input" in data ? data : { input: data };
