/** A place in a window: the filtered date of the last record given out, µs since the epoch, and its id. */
export type CursorPosition = { readonly date: number; readonly id: string };

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

const VERSION = "1";
const SHAPE = /^1:(0|[1-9]\d{0,15}):(.+)$/s;

/** The content of a cursor. The scope is not in it: the request repeats it. */
export const encodePosition = (position: CursorPosition): string =>
  `${VERSION}:${position.date}:${position.id}`;

/** Reads what `encodePosition` wrote; undefined for any other text. */
export const decodePosition = (content: string): CursorPosition | undefined => {
  const match = SHAPE.exec(content);
  if (match === null) return undefined;
  const [, date, id] = match;
  return date === undefined || id === undefined ? undefined : { date: Number(date), id };
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
