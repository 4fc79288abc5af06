import { createHmac, createSecretKey } from "node:crypto";

/** Keyed hashes of identifiers of persons: without the secret they reveal nothing. */
export type SubjectHash = {
  /** HMAC-SHA-256 in base64url of a client's identifier in the form of `subjectOf`. */
  of(clientId: string, subject: string): string;
  /** Hash of the secret itself: equal hashes come from one secret. */
  readonly ofSecret: string;
};

/** @param secret the same for all processes and for ever: stored hashes cannot be made anew */
export const createSubjectHash = (secret: string): SubjectHash => {
  const key = createSecretKey(secret, "utf8");
  const hash = (text: string): string => createHmac("sha256", key).update(text).digest("base64url");
  return {
    of: (clientId, subject) => hash(`subject\0${clientId}\0${subject}`),
    ofSecret: hash("secret"),
  };
};
