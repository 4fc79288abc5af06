import { createHmac, timingSafeEqual } from "node:crypto";
import { deriveKey } from "@conversation-export/runtime";

const MAC_BYTES = 32;

/** Cursors are base64url of an HMAC-SHA256 and their content. */
export type CursorSigner = {
  /** @param covered text that the signature covers: the content and what the cursor belongs to */
  sign(content: string, covered: string): string;
  /**
   * The content; undefined when the cursor was not made by this service for what it covers.
   * @param coveredOf the text that the signature of a content must cover
   */
  open(cursor: string, coveredOf: (content: string) => string): string | undefined;
};

/** @param deps.previousSecret opens cursors that were made before a change of the secret */
export const createCursorSigner = (deps: {
  readonly secret: string;
  readonly previousSecret?: string | undefined;
}): CursorSigner => {
  const key = deriveKey(deps.secret, "cursors");
  const keys = deps.previousSecret === undefined ? [key] : [key, deriveKey(deps.previousSecret, "cursors")];
  const mac = (by: Buffer, covered: string): Buffer => createHmac("sha256", by).update(covered).digest();

  return {
    sign: (content, covered) =>
      Buffer.concat([mac(key, covered), Buffer.from(content)]).toString("base64url"),
    open: (cursor, coveredOf) => {
      const bytes = Buffer.from(cursor, "base64url");
      // Node's decoder skips other characters; only the spelling that was given out is accepted.
      if (bytes.length <= MAC_BYTES || bytes.toString("base64url") !== cursor) return undefined;
      const given = bytes.subarray(0, MAC_BYTES);
      const content = bytes.subarray(MAC_BYTES).toString();
      const covered = coveredOf(content);
      return keys.some((one) => timingSafeEqual(mac(one, covered), given)) ? content : undefined;
    },
  };
};
