/** Begin of the comment of a query whose stamp was checked; the tables let no other rows of the past in. */
export const STAMPED = "stamped";

/** What the constraint `stamped` says. */
export const BY_HAND_REFUSED = "of rows that are inserted by hand must be the present";
