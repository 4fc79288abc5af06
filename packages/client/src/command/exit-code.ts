import { ExportAnswerError, ExportApiError, ExportConnectionError, isTransient } from "../http/errors.ts";
import { visibleText } from "../http/visible-text.ts";

export const EXIT = {
  ok: 0,
  failed: 1,
  usage: 2,
  refused: 3,
  unavailable: 4,
  different: 5,
  copy: 6,
  forbidden: 7,
} as const;

class CommandError extends Error {
  constructor(message: string) {
    super(visibleText(message));
  }
}

export class UsageError extends CommandError {
  override readonly name = "UsageError";
}

export class CopyError extends CommandError {
  override readonly name = "CopyError";
}

export class StoppedError extends CommandError {
  override readonly name = "StoppedError";
}

export class ExpiredError extends CommandError {
  override readonly name = "ExpiredError";
}

const FORBIDDEN = 403;
const SYSTEM_ERROR = /^E[A-Z]+$/;

export const isSystemError = (error: unknown): error is Error =>
  error instanceof Error && "code" in error && SYSTEM_ERROR.test(String(error.code));

export const isCode = (error: unknown, code: string): boolean =>
  error instanceof Error && "code" in error && error.code === code;

/** A SyntaxError of JSON.parse quotes the text, so only its frames are kept. */
const stackOf = (error: Error): string => {
  const stack = error.stack ?? error.message;
  if (!(error instanceof SyntaxError)) return stack;
  const frames = stack.split("\n").filter((line) => /^\s+at /.test(line));
  return ["SyntaxError: a text is not what it should be", ...frames].join("\n");
};

export const explain = (error: unknown): { readonly code: number; readonly text: string } => {
  if (error instanceof UsageError) return { code: EXIT.usage, text: `${error.message}\ntry --help` };
  if (error instanceof CopyError) return { code: EXIT.copy, text: error.message };
  if (error instanceof ExportConnectionError) return { code: EXIT.unavailable, text: error.message };
  if (error instanceof ExportApiError) {
    const id = error.requestId === null ? "" : `, request ${error.requestId}`;
    const refused = error.status === FORBIDDEN ? EXIT.forbidden : EXIT.refused;
    return { code: isTransient(error) ? EXIT.unavailable : refused, text: `${error.message}${id}` };
  }
  if (error instanceof ExportAnswerError || error instanceof ExpiredError)
    return { code: EXIT.refused, text: error.message };
  if (isSystemError(error) || error instanceof StoppedError)
    return { code: EXIT.failed, text: error.message };
  return { code: EXIT.failed, text: error instanceof Error ? stackOf(error) : String(error) };
};
