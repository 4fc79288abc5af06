import { createHmac } from "node:crypto";
import { deriveKey } from "@conversation-export/runtime";
import { networksOf } from "./networks.ts";

/** Pseudonym, equal in all processes with the same secret. */
export type CallerOf = (address: string) => string;

const DIGITS = 16;

/** The hash is keyed, since all IPv4 addresses can be tried. */
export const createCallerOf = (secret: string): CallerOf => {
  const key = deriveKey(secret, "addresses");
  return (address) => createHmac("sha256", key).update(networksOf(address)[0]).digest("hex").slice(0, DIGITS);
};
