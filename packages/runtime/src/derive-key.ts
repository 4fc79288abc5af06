import { hkdfSync } from "node:crypto";

/**
 * A key of 32 bytes for one purpose (HKDF-SHA-256, RFC 5869): what one purpose reveals or signs is of no use
 * for another.
 */
export const deriveKey = (secret: string, purpose: string): Buffer =>
  Buffer.from(hkdfSync("sha256", secret, "", `conversation-export ${purpose}`, 32));
