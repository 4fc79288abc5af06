/** Data of a job as stored in its queue. */
export type StoredData = {
  readonly input: unknown;
  /** State saved by the job. */
  readonly state?: unknown;
  /** The parts that a job was split into. */
  readonly plan?: readonly unknown[];
  /** Set while the parts of `plan` run. */
  readonly waiting?: boolean;
  /** Parts only: the job of the part and its place in the plan. */
  readonly parent?: { readonly id: string; readonly index: number };
};

/** Also reads jobs whose data is the bare input, as other programs may add them. */
export const readStoredData = (data: unknown): StoredData =>
  typeof data === "object" && data !== null && "input" in data ? data : { input: data };
