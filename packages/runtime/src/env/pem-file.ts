import { createPrivateKey, X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import { ConfigError } from "../errors.ts";

const CERTIFICATE = /-----BEGIN CERTIFICATE-----[\s\S]+?-----END CERTIFICATE-----/g;

// Without the value: it may be the secret itself, given instead of a path.
const readText = (variable: string, path: string): string => {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    const { code = "" } = error as NodeJS.ErrnoException;
    const why =
      code === "ENOENT" || code === "ENAMETOOLONG" ? "there is no such file" : `unreadable (${code})`;
    throw new ConfigError([`${variable}: ${why}; it must be the path of a PEM file`]);
  }
};

const isCertificate = (pem: string): boolean => {
  try {
    return new X509Certificate(pem).subject !== null;
  } catch {
    return false;
  }
};

export const readCertificates = (variable: string, path: string): string => {
  const text = readText(variable, path);
  const found = text.match(CERTIFICATE) ?? [];
  if (!found.every(isCertificate)) {
    throw new ConfigError([`${variable}: a certificate in the file is damaged`]);
  }
  if (found.length === 0) {
    throw new ConfigError([
      `${variable}: the file holds no certificate in PEM (-----BEGIN CERTIFICATE-----)`,
    ]);
  }
  return text;
};

export const readPrivateKey = (variable: string, path: string): string => {
  const text = readText(variable, path);
  try {
    createPrivateKey(text);
  } catch {
    throw new ConfigError([`${variable}: the file holds no private key in PEM without a passphrase`]);
  }
  return text;
};

/** Only the first certificate counts. */
export const isPair = (certificates: string, key: string): boolean =>
  new X509Certificate(certificates).checkPrivateKey(createPrivateKey(key));
