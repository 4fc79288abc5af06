/** An expected failure. `retryable`: the same operation may succeed later. */
export class ServiceError extends Error {
  readonly code: string;
  readonly retryable: boolean;

  /**
   * @param code short stable name in snake_case, suitable as a metric label
   * @param message one sentence for a log line, without personal data
   */
  constructor(code: string, message: string, options: { retryable?: boolean; cause?: unknown } = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = "ServiceError";
    this.code = code;
    this.retryable = options.retryable ?? false;
  }
}

/** The environment is invalid. `problems` has one line for each wrong variable. */
export class ConfigError extends ServiceError {
  readonly problems: readonly string[];

  constructor(problems: readonly string[]) {
    super("config", `wrong configuration:\n${problems.map((problem) => `  ${problem}`).join("\n")}`);
    this.name = "ConfigError";
    this.problems = problems;
  }
}

/** true: the error is a ServiceError that may not occur again. */
export const isRetryable = (error: unknown): boolean => error instanceof ServiceError && error.retryable;
