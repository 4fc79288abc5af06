/** What tells a browser to make nothing of an answer but data. */
export const SECURITY_HEADERS: Readonly<Record<string, string>> = {
  "x-content-type-options": "nosniff",
  "x-frame-options": "DENY",
  "referrer-policy": "no-referrer",
  "cross-origin-resource-policy": "same-origin",
  "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
};

/** Browsers keep to https from now on; it has no meaning over plain http (RFC 6797, 7.2). */
export const TRANSPORT_SECURITY = "max-age=31536000; includeSubDomains";
