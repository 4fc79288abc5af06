import { hkdfSync } from "node:crypto";

/** What one purpose reveals or signs is of no use for another (HKDF-SHA-256, RFC 5869). */
export const deriveKey = (secret: string, purpose: string): Buffer =>
  Buffer.from(hkdfSync("sha256", secret, "", `conversation-export ${purpose}`, 32));
