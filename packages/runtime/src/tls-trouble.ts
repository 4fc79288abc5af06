/** None of these is temporary. */
export type TlsTrouble =
  | "unknown_authority"
  | "other_name"
  | "out_of_date"
  | "no_tls"
  | "client_certificate"
  | "bad_certificate";

const TROUBLES: readonly (readonly [RegExp, TlsTrouble])[] = [
  [/^ERR_TLS_CERT_ALTNAME_|^HOSTNAME_MISMATCH$/, "other_name"],
  [/^CERT_HAS_EXPIRED$|^CERT_NOT_YET_VALID$/, "out_of_date"],
  [
    /^UNABLE_TO_(GET_ISSUER_CERT|VERIFY_LEAF_SIGNATURE)|SELF_SIGNED_CERT|^CERT_(SIGNATURE_FAILURE|UNTRUSTED)$/,
    "unknown_authority",
  ],
  [/^EPROTO$|^ERR_SSL_(WRONG_VERSION_NUMBER|PACKET_LENGTH_TOO_LONG|HTTP_REQUEST)$/, "no_tls"],
  [/^ERR_SSL_.*ALERT_(.*CERTIFICATE|UNKNOWN_CA|HANDSHAKE_FAILURE)/, "client_certificate"],
  [/^CERT_|^INVALID_CA$|^ERR_TLS_CERT_/, "bad_certificate"],
];

export const tlsTroubleOf = (code: unknown): TlsTrouble | undefined =>
  typeof code === "string" ? TROUBLES.find(([shape]) => shape.test(code))?.[1] : undefined;
