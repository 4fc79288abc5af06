import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";

export const makePemFiles = (folder: string) => {
  const path = (name: string): string => join(folder, name);
  const key = ["genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-out"];
  const certificate = ["req", "-x509", "-subj", "/CN=test", "-days", "2"];
  for (const args of [
    [...key, path("key.pem")],
    [...key, path("other.pem")],
    [...certificate, "-key", path("key.pem"), "-out", path("cert.pem")],
  ]) {
    execFileSync("openssl", args, { stdio: ["ignore", "ignore", "pipe"] });
  }
  writeFileSync(path("text.pem"), "hunter2");
  writeFileSync(
    path("damaged.pem"),
    "-----BEGIN CERTIFICATE-----\naHVudGVyMg==\n-----END CERTIFICATE-----\n",
  );
  return {
    cert: path("cert.pem"),
    key: path("key.pem"),
    other: path("other.pem"),
    text: path("text.pem"),
    damaged: path("damaged.pem"),
    nothing: path("nothing.pem"),
  };
};
