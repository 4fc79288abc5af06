import type { Readable } from "node:stream";
import type { PageStatement } from "./page-statements.ts";

/** Sends a query and passes the response stream to `open`. */
export type SendStatement = <T>(
  statement: PageStatement,
  open: (stream: Readable) => T | Promise<T>,
  signal: AbortSignal | undefined,
) => Promise<T>;
