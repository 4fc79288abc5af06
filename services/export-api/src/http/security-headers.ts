/** Browsers are to treat answers as data, and never run or embed them. */
export const SECURITY_HEADERS: Readonly<Record<string, string>> = {
  "x-content-type-options": "nosniff",
  "x-frame-options": "DENY",
  "referrer-policy": "no-referrer",
  "cross-origin-resource-policy": "same-origin",
  "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
};

/**
 * Makes browsers use https from now on; must not be sent over plain http (RFC 6797, 7.2).
 * @param includeSubDomains also for the hosts below this one, which may be none of this service
 */
export const transportSecurity = (includeSubDomains: boolean): string =>
  `max-age=31536000${includeSubDomains ? "; includeSubDomains" : ""}`;
