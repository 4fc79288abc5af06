/** Lower bound in the next link: the request's, or behind the last record. */
export const LINK_BOUNDS = ["same", "advancing"] as const;
export type LinkBounds = (typeof LINK_BOUNDS)[number];
