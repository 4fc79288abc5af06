import { createRequestStore, type RequestStore, type Session } from "@conversation-export/warehouse";

/** `idSecret`: for new requests. */
export const storedRequests = (session: Session, now: () => Date, idSecret = ""): RequestStore =>
  createRequestStore({ session, now: () => now().getTime(), idSecret });
