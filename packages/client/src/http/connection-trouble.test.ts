import { expect, it } from "vitest";
import { troubleOf } from "./connection-trouble.ts";

const coded = (code: string, cause?: unknown): Error =>
  Object.assign(new Error(`what ${code} means`, { cause }), { code });
const failed = (cause: unknown): Error => new TypeError("fetch failed", { cause });

const AUTHORITY = "NODE_EXTRA_CA_CERTS";
it.each<[string, string | null, boolean]>([
  ["SELF_SIGNED_CERT_IN_CHAIN", AUTHORITY, true],
  ["UNABLE_TO_GET_ISSUER_CERT_LOCALLY", AUTHORITY, true],
  ["UNABLE_TO_VERIFY_LEAF_SIGNATURE", AUTHORITY, true],
  ["CERT_HAS_EXPIRED", "has expired", true],
  ["CERT_REVOKED", "revoked", true],
  ["CERT_SIGNATURE_FAILURE", "not one to trust", true],
  ["HOSTNAME_MISMATCH", "another name", true],
  ["ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED", "asks for a certificate of the client", true],
  ["ERR_SSL_SSLV3_ALERT_BAD_CERTIFICATE", "refuses this TLS connection", true],
  ["ERR_SSL_SSLV3_ALERT_HANDSHAKE_FAILURE", "refuses this TLS connection", true],
  ["ERR_SSL_TLSV1_UNRECOGNIZED_NAME", "refuses this TLS connection", true],
  ["ERR_SSL_WRONG_VERSION_NUMBER", "does not speak TLS", true],
  ["ECONNREFUSED", "nothing listens there", false],
  ["UND_ERR_SOCKET", "is it an https:// address", false],
  ["ECONNRESET", "is it an https:// address", false],
  ["UND_ERR_BODY_TIMEOUT", null, false],
])("%s is said with what to do", (code, said, isLasting) => {
  const { hint, ...trouble } = troubleOf(failed(coded(code)), false);
  expect(trouble).toMatchObject({ said: code, isLasting });
  expect(hint).toEqual(said === null ? null : expect.stringContaining(said));
  if (said !== AUTHORITY) expect(hint ?? "").not.toContain(AUTHORITY);
});

it.each<[number, string, boolean]>([
  [407, "the proxy refuses: are user and password in the variable", true],
  [403, "the proxy refuses: are user and password in the variable", true],
  [502, "the proxy does not reach the host", false],
  [503, "the proxy does not reach the host", false],
  [404, "is it a proxy", true],
])("%i of a proxy is found behind the error of the request", (status, said, isLasting) => {
  const message = `Proxy response (${status}) !== 200 when HTTP Tunneling`;
  const cause = Object.assign(new Error(message), { code: "UND_ERR_ABORTED" });
  const error = failed(Object.assign(new Error("Request was cancelled.", { cause }), { name: "AbortError" }));
  expect(troubleOf(error, false)).toEqual({
    said: message,
    hint: expect.stringContaining(said),
    isUnsent: true,
    isLasting,
  });
});

it("a host that has answered is tried again, and its address taken for right", () => {
  expect(troubleOf(failed(coded("ENOTFOUND")), true)).toMatchObject({ isLasting: false });
  expect(troubleOf(failed(coded("UND_ERR_SOCKET")), true)).toMatchObject({ hint: null });
});

it("a request that a TLS connection may have brought is not taken for unsent", () => {
  expect(troubleOf(failed(coded("ERR_SSL_TLSV1_ALERT_INTERNAL_ERROR")), false)).toMatchObject({
    isUnsent: false,
  });
  expect(troubleOf(failed(coded("ECONNREFUSED")), false)).toMatchObject({ isUnsent: true });
});
