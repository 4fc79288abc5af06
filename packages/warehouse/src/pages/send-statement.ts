import type { Readable } from "node:stream";
import type { PageStatement } from "./page-statements.ts";

export type SendStatement = <T>(
  statement: PageStatement,
  open: (stream: Readable) => T | Promise<T>,
  signal: AbortSignal | undefined,
) => Promise<T>;
