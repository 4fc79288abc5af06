export type StoredData = {
  readonly input: unknown;
  readonly state?: unknown;
  readonly plan?: readonly unknown[];
  /** The parts of `plan` run. */
  readonly waiting?: boolean;
  readonly parent?: { readonly id: string; readonly index: number };
};

/** Other programs may add jobs with the bare input. */
export const readStoredData = (data: unknown): StoredData =>
  typeof data === "object" && data !== null && "input" in data ? data : { input: data };
