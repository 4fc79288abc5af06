/**
 * A place in a window: the filtered date of the last record given out, µs since the epoch, and its id; without an id, in
 * front of all records of that date.
 */
export type CursorPosition = {
  readonly date: number;
  readonly id: string;
  /** How far apart the records of the page lay, whole µs; absent when unknown. */
  readonly pace?: number;
};

/** The request that a cursor belongs to; other requests refuse it. */
export type CursorScope = {
  readonly clientId: string;
  readonly endpoint: string;
  /** The date that is filtered and sorted by. */
  readonly filter: "created" | "updated";
  readonly conversationId: string | null;
  /** Lower bound, inclusive, µs since the epoch. */
  readonly since: number;
  /** Upper bound, exclusive, µs since the epoch. */
  readonly to: number;
};

// Both forms stay readable: a walk goes on through a roll-out.
const SHAPE = /^1:(0|[1-9]\d{0,15}):(.*)$/s;
const SHAPE_WITH_PACE = /^2:(0|[1-9]\d{0,15}):(0|[1-9]\d{0,15}):(.*)$/s;

/** The content of a cursor. The scope is not in it: the request repeats it. */
export const encodePosition = ({ date, pace, id }: CursorPosition): string =>
  pace === undefined ? `1:${date}:${id}` : `2:${date}:${pace}:${id}`;

/** Reads what `encodePosition` wrote; undefined for any other text. */
export const decodePosition = (content: string): CursorPosition | undefined => {
  const [, date, id] = SHAPE.exec(content) ?? [];
  if (id !== undefined) return { date: Number(date), id };
  const [, on, pace, idBehind] = SHAPE_WITH_PACE.exec(content) ?? [];
  return idBehind === undefined ? undefined : { date: Number(on), pace: Number(pace), id: idBehind };
};

/** The text that a cursor's signature covers: content and scope, no two of which give the same text. */
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
