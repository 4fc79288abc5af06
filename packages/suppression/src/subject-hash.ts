import { createHmac, createSecretKey } from "node:crypto";

/** Keyed hashes of identifiers of persons, which say nothing to who does not have the secret. */
export type SubjectHash = {
  /** HMAC-SHA-256 of an identifier as `subjectOf` writes it, of one client, in base64url. */
  of(clientId: string, subject: string): string;
  /** Stands for the secret itself: two that are equal come from one secret. */
  readonly ofSecret: string;
};

/** @param secret the same for all processes and for ever: no hash can be made anew */
export const createSubjectHash = (secret: string): SubjectHash => {
  const key = createSecretKey(secret, "utf8");
  const hash = (text: string): string => createHmac("sha256", key).update(text).digest("base64url");
  return {
    of: (clientId, subject) => hash(`subject\0${clientId}\0${subject}`),
    ofSecret: hash("secret"),
  };
};
