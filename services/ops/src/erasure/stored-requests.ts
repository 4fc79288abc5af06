import { createRequestStore, type RequestStore, type Session } from "@conversation-export/warehouse";

/** Not for new requests, whose ids need the secret. */
export const storedRequests = (session: Session, now: () => Date): RequestStore =>
  createRequestStore({ session, now: () => now().getTime(), idSecret: "" });
