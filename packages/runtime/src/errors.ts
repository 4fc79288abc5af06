/** `retryable`: the same operation may succeed later. */
export class ServiceError extends Error {
  readonly code: string;
  readonly retryable: boolean;

  /** `code`: snake_case, a metric label; `message`: for a log line, without personal data. */
  constructor(code: string, message: string, options: { retryable?: boolean; cause?: unknown } = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = "ServiceError";
    this.code = code;
    this.retryable = options.retryable ?? false;
  }
}

export class ConfigError extends ServiceError {
  readonly problems: readonly string[];

  constructor(problems: readonly string[]) {
    super("config", `wrong configuration:\n${problems.map((problem) => `  ${problem}`).join("\n")}`);
    this.name = "ConfigError";
    this.problems = problems;
  }
}

export const isRetryable = (error: unknown): boolean => error instanceof ServiceError && error.retryable;
