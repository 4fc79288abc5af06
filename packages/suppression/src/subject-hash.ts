import { createHmac, createSecretKey } from "node:crypto";

export type SubjectHash = {
  /** HMAC-SHA-256 in base64url; `subject` as from `subjectOf`. */
  of(clientId: string, subject: string): string;
  /** Equal hashes come from one secret. */
  readonly ofSecret: string;
};

/** The secret must never change: stored hashes cannot be made anew. */
export const createSubjectHash = (secret: string): SubjectHash => {
  const key = createSecretKey(secret, "utf8");
  const hash = (text: string): string => createHmac("sha256", key).update(text).digest("base64url");
  return {
    of: (clientId, subject) => hash(`subject\0${clientId}\0${subject}`),
    ofSecret: hash("secret"),
  };
};
