/** Lower bound in the link to the next page: the request's, or behind the page's last record. */
export const LINK_BOUNDS = ["same", "advancing"] as const;
export type LinkBounds = (typeof LINK_BOUNDS)[number];
