/**
 * How the link to the next page gives the lower bound of the window: `same` repeats the request's,
 * `advancing` moves it behind the last record of the page.
 */
export const LINK_BOUNDS = ["same", "advancing"] as const;
export type LinkBounds = (typeof LINK_BOUNDS)[number];
