import { createHmac, timingSafeEqual } from "node:crypto";
import { deriveKey } from "@conversation-export/runtime";
import { badRequest } from "../http/api-error.ts";

const MAC_BYTES = 32;

export type CursorSecrets = { readonly secret: string; readonly previousSecret?: string | undefined };

/** base64url of an HMAC-SHA256 and the content. */
export const createCursorSigner = (deps: CursorSecrets) => {
  const key = deriveKey(deps.secret, "cursors");
  const keys = deps.previousSecret === undefined ? [key] : [key, deriveKey(deps.previousSecret, "cursors")];
  const mac = (by: Buffer, covered: string): Buffer => createHmac("sha256", by).update(covered).digest();

  return {
    /** `covered`: content and what the cursor belongs to. */
    sign: (content: string, covered: string): string =>
      Buffer.concat([mac(key, covered), Buffer.from(content)]).toString("base64url"),
    /** undefined when not signed by this service. */
    open: (cursor: string, coveredOf: (content: string) => string): string | undefined => {
      const bytes = Buffer.from(cursor, "base64url");
      // Node's decoder skips other characters; only the exact spelling is accepted.
      if (bytes.length <= MAC_BYTES || bytes.toString("base64url") !== cursor) return undefined;
      const given = bytes.subarray(0, MAC_BYTES);
      const content = bytes.subarray(MAC_BYTES).toString();
      const covered = coveredOf(content);
      return keys.some((one) => timingSafeEqual(mac(one, covered), given)) ? content : undefined;
    },
  };
};

export const createCursors = <Place, Scope>(
  secrets: CursorSecrets,
  form: {
    readonly encode: (place: Place) => string;
    readonly decode: (content: string) => Place | undefined;
    readonly signed: (content: string, scope: Scope) => string;
  },
) => {
  const signer = createCursorSigner(secrets);
  return {
    write: (place: Place, scope: Scope): string => {
      const content = form.encode(place);
      return signer.sign(content, form.signed(content, scope));
    },
    /** @throws ApiError 400 for a cursor of another scope */
    read: (cursor: string, scope: Scope): Place => {
      const content = signer.open(cursor, (text) => form.signed(text, scope));
      const place = content === undefined ? undefined : form.decode(content);
      if (place === undefined) throw badRequest(["cursor: does not belong to this request"]);
      return place;
    },
  };
};
