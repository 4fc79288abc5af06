export const SECURITY_HEADERS: Readonly<Record<string, string>> = {
  "x-content-type-options": "nosniff",
  "x-frame-options": "DENY",
  "referrer-policy": "no-referrer",
  "cross-origin-resource-policy": "same-origin",
  "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
};

/** Not for plain http (RFC 6797, 7.2). */
export const transportSecurity = (includeSubDomains: boolean): string =>
  `max-age=31536000${includeSubDomains ? "; includeSubDomains" : ""}`;
