/** The last record, by its filtered date (µs); empty id: before all of that date. */
export type CursorPosition = {
  readonly date: number;
  readonly id: string;
  /** Whole µs between the page's records. */
  readonly pace?: number;
};

export type CursorScope = {
  readonly clientId: string;
  readonly endpoint: string;
  readonly filter: "created" | "updated";
  readonly conversationId: string | null;
  /** Inclusive, µs. */
  readonly since: number;
  /** Exclusive, µs. */
  readonly to: number;
};

// Readers page on during a roll-out, so both forms stay readable.
const SHAPE = /^1:(0|[1-9]\d{0,15}):(.*)$/s;
const SHAPE_WITH_PACE = /^2:(0|[1-9]\d{0,15}):(0|[1-9]\d{0,15}):(.*)$/s;

export const encodePosition = ({ date, pace, id }: CursorPosition): string =>
  pace === undefined ? `1:${date}:${id}` : `2:${date}:${pace}:${id}`;

export const decodePosition = (content: string): CursorPosition | undefined => {
  const [, date, id] = SHAPE.exec(content) ?? [];
  if (id !== undefined) return { date: Number(date), id };
  const [, on, pace, idBehind] = SHAPE_WITH_PACE.exec(content) ?? [];
  return idBehind === undefined ? undefined : { date: Number(on), pace: Number(pace), id: idBehind };
};

/** What the signature covers; distinct for distinct content or scope. */
export const signedText = (content: string, scope: CursorScope): string =>
  JSON.stringify([
    content,
    scope.clientId,
    scope.endpoint,
    scope.filter,
    scope.conversationId,
    scope.since,
    scope.to,
  ]);
