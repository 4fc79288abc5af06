import { MICROS_IN_DAY, type Micros } from "../event/timestamp.ts";

export type ChangePosition = {
  /** The next change is no earlier. */
  readonly date: Micros;
  readonly id: string;
  /** What the reader holds was read then or later. */
  readonly begun: Micros;
};

export type ChangeScope = { readonly clientId: string; readonly list: string };

const SHAPE = /^c1:(0|[1-9]\d{0,15}):(0|[1-9]\d{0,15}):(.*)$/s;

export const encodeChangePosition = ({ date, id, begun }: ChangePosition): string =>
  `c1:${date}:${begun}:${id}`;

export const decodeChangePosition = (content: string): ChangePosition | undefined => {
  const [, date, begun, id] = SHAPE.exec(content) ?? [];
  if (date === undefined || begun === undefined || id === undefined) return undefined;
  return { date: Number(date), begun: Number(begun), id };
};

/** What the signature covers; distinct for distinct content or scope. */
export const signedChange = (content: string, { clientId, list }: ChangeScope): string =>
  JSON.stringify([content, clientId, list]);

/** At least; the TTL of `changes` is 32 days. */
export const DELETIONS_KEPT_DAYS = 30;

export const isExpiredPosition = ({ date, begun }: ChangePosition, now: Micros): boolean => {
  const kept = now - DELETIONS_KEPT_DAYS * MICROS_IN_DAY;
  return date < kept && begun < kept;
};
