import { createHmac, timingSafeEqual } from "node:crypto";
import {
  type CursorPosition,
  type CursorScope,
  decodePosition,
  encodePosition,
  signedText,
} from "@conversation-export/domain";

const MAC_BYTES = 32;

export type CursorSigner = {
  /** The cursor for a position, valid in this scope alone. */
  sign(scope: CursorScope, position: CursorPosition): string;
  /** The position in a cursor, or undefined when it was made for another scope or by somebody else. */
  open(scope: CursorScope, cursor: string): CursorPosition | undefined;
};

/**
 * Cursors are base64url of an HMAC-SHA256 and the position. `previousSecret` opens cursors made before a change
 * of the secret.
 */
export const createCursorSigner = (deps: {
  secret: string;
  previousSecret?: string | undefined;
}): CursorSigner => {
  const secrets = deps.previousSecret === undefined ? [deps.secret] : [deps.secret, deps.previousSecret];
  const mac = (secret: string, content: string, scope: CursorScope): Buffer =>
    createHmac("sha256", secret).update(signedText(content, scope)).digest();

  return {
    sign: (scope, position) => {
      const content = encodePosition(position);
      return Buffer.concat([mac(deps.secret, content, scope), Buffer.from(content)]).toString("base64url");
    },
    open: (scope, cursor) => {
      const bytes = Buffer.from(cursor, "base64url");
      // Node's decoder skips what is not base64url: only the one spelling that was given out is accepted.
      if (bytes.length <= MAC_BYTES || bytes.toString("base64url") !== cursor) return undefined;
      const given = bytes.subarray(0, MAC_BYTES);
      const content = bytes.subarray(MAC_BYTES).toString();
      const genuine = secrets.some((secret) => timingSafeEqual(mac(secret, content, scope), given));
      return genuine ? decodePosition(content) : undefined;
    },
  };
};
