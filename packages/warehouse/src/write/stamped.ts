/** Begins a query's comment once its stamp is checked; tables take no other old rows. */
export const STAMPED = "stamped";

export const BY_HAND_REFUSED = "of rows that are inserted by hand must be the present";
