import { randomUUID } from "node:crypto";

const SANE = /^[A-Za-z0-9._:+/=@-]{1,128}$/;

/** The request id that the caller gave, when it is short and plain, else a new one. */
export const requestIdOf = (given: string | string[] | undefined): string =>
  typeof given === "string" && SANE.test(given) ? given : randomUUID();
