import { MICROS_IN_DAY, type Micros } from "../event/timestamp.ts";

/** A place among the changes of a list. */
export type ChangePosition = {
  /** The next change was stored at this instant or later. */
  readonly date: Micros;
  /** Of the changes of that instant, the next one has a larger id. */
  readonly id: string;
  /** When the reader began: what it holds was read at this instant or later. */
  readonly begun: Micros;
};

/** The reader that a cursor belongs to; others refuse it. */
export type ChangeScope = { readonly clientId: string; readonly list: string };

const SHAPE = /^c1:(0|[1-9]\d{0,15}):(0|[1-9]\d{0,15}):(.*)$/s;

/** The content of a cursor of changes. */
export const encodeChangePosition = ({ date, id, begun }: ChangePosition): string =>
  `c1:${date}:${begun}:${id}`;

/** Reads what `encodeChangePosition` wrote; undefined for any other text. */
export const decodeChangePosition = (content: string): ChangePosition | undefined => {
  const [, date, begun, id] = SHAPE.exec(content) ?? [];
  if (date === undefined || begun === undefined || id === undefined) return undefined;
  return { date: Number(date), begun: Number(begun), id };
};

/** The text that a cursor's signature covers: content and scope, no two of which give the same text. */
export const signedChange = (content: string, { clientId, list }: ChangeScope): string =>
  JSON.stringify([content, clientId, list]);

/** For how long deletions stay among the changes, at least. */
export const DELETIONS_KEPT_DAYS = 30;

/** True if deletions behind this position may have been removed (`DELETIONS_KEPT_DAYS`). */
export const isExpiredPosition = ({ date, begun }: ChangePosition, now: Micros): boolean => {
  const kept = now - DELETIONS_KEPT_DAYS * MICROS_IN_DAY;
  return date < kept && begun < kept;
};
