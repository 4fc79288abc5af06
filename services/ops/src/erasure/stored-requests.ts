import { createRequestStore, type RequestStore, type Session } from "@conversation-export/warehouse";

/** For what is stored already: only the id of a new request is made with the secret. */
export const storedRequests = (session: Session, now: () => Date): RequestStore =>
  createRequestStore({ session, now: () => now().getTime(), idSecret: "" });
