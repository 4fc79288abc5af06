import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

export type Identity = {
  readonly cert: string;
  readonly key: string;
  readonly certPath: string;
  readonly keyPath: string;
};

export type Authority = Identity & { readonly issue: (name: string, names?: readonly string[]) => Identity };

const HERE = ["DNS:localhost", "IP:127.0.0.1"];
const KEY = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];

const openssl = (...args: string[]): void => {
  execFileSync("openssl", args, { stdio: ["ignore", "ignore", "pipe"] });
};

const read = (certPath: string, keyPath: string): Identity => ({
  cert: readFileSync(certPath, "utf8"),
  key: readFileSync(keyPath, "utf8"),
  certPath,
  keyPath,
});

export const createAuthority = (folder: string, name = "authority"): Authority => {
  mkdirSync(folder, { recursive: true });
  const paths = (one: string) => [join(folder, `${one}.pem`), join(folder, `${one}.key`)] as const;
  const [caCert, caKey] = paths(name);
  const subject = ["-subj", `/CN=${name}`];
  openssl("req", "-x509", ...KEY, ...subject, "-days", "2", "-keyout", caKey, "-out", caCert);
  return {
    ...read(caCert, caKey),
    issue: (own, names = HERE) => {
      const [cert, key] = paths(own);
      const request = join(folder, `${own}.csr`);
      const extensions = join(folder, `${own}.ext`);
      writeFileSync(extensions, `subjectAltName=${names.join(",")}\n`);
      openssl("req", ...KEY, "-subj", `/CN=${own}`, "-keyout", key, "-out", request);
      const signed = [
        "-CA",
        caCert,
        "-CAkey",
        caKey,
        "-CAcreateserial",
        "-days",
        "2",
        "-extfile",
        extensions,
      ];
      openssl("x509", "-req", "-in", request, ...signed, "-out", cert);
      return read(cert, key);
    },
  };
};

/** Java reads \n in a line of properties as an end of line. */
export const inProperty = (text: string): string => text.trim().replaceAll("\n", "\\n");

export const kafkaKeystore = ({ key, cert }: Identity): Readonly<Record<string, string>> => ({
  "ssl.keystore.type": "PEM",
  "ssl.keystore.key": inProperty(key),
  "ssl.keystore.certificate.chain": inProperty(cert),
});
