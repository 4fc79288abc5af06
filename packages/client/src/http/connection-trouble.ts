export type Trouble = {
  readonly said: string;
  readonly hint: string | null;
  readonly isUnsent: boolean;
  readonly isLasting: boolean;
};

type Kind = Pick<Trouble, "hint" | "isUnsent" | "isLasting">;

const lasting = (hint: string): Kind => ({ hint, isUnsent: true, isLasting: true });
const passing = (hint: string | null): Kind => ({ hint, isUnsent: true, isLasting: false });
/** A broken connection may have delivered the request. */
const maybeSent = (kind: Kind): Kind => ({ ...kind, isUnsent: false });

/** The first match counts. */
const KINDS: readonly (readonly [RegExp, Kind])[] = [
  [/^CERT_HAS_EXPIRED$/, lasting("its certificate has expired")],
  [/^CERT_NOT_YET_VALID$/, lasting("its certificate is not valid yet: is the clock of this machine right?")],
  [/^CERT_REVOKED$/, lasting("its certificate was revoked")],
  [
    /^(ERR_TLS_CERT_ALTNAME_INVALID|HOSTNAME_MISMATCH)$/,
    lasting("its certificate is for another name: give the address with a name that it has"),
  ],
  [
    /^(DEPTH_ZERO_SELF_SIGNED_CERT|SELF_SIGNED_CERT_IN_CHAIN|CERT_UNTRUSTED|UNABLE_TO_GET_ISSUER_CERT(_LOCALLY)?|UNABLE_TO_VERIFY_LEAF_SIGNATURE)$/,
    lasting(
      "its certificate is not trusted: name a file with the certificate of its authority in NODE_EXTRA_CA_CERTS",
    ),
  ],
  [
    /^(CERT_\w+|ERROR_IN_CERT_\w+|UNABLE_TO_\w+|INVALID_(CA|PURPOSE)|PATH_LENGTH_EXCEEDED)$/,
    lasting("its certificate is not one to trust"),
  ],
  [
    /^ERR_SSL_\w*ALERT_CERTIFICATE_REQUIRED$/,
    maybeSent(lasting("it asks for a certificate of the client, and there is no way to give one")),
  ],
  [
    /^ERR_SSL_\w*(ALERT|UNRECOGNIZED_NAME)/,
    maybeSent(
      lasting("it refuses this TLS connection: does it want a certificate of the client, or another name?"),
    ),
  ],
  [
    /^ERR_SSL_|^EPROTO$/,
    maybeSent(lasting("it does not speak TLS as it should: is the address one of http://?")),
  ],
  [
    /^Proxy response \((403|407)\)/,
    lasting(
      "the proxy refuses: are user and password in the variable that names it, and does it allow this host?",
    ),
  ],
  [/^Proxy response \((408|425|429|5\d\d)\)/, passing("the proxy does not reach the host")],
  [/^Proxy response /, lasting("is it a proxy that the variable names?")],
  [/^ENOTFOUND$/, lasting("no such host is known: is the address right?")],
  [/^bad port$/, lasting("requests to this port are not sent: is the address right?")],
  [/does not match the HTTP/, maybeSent(lasting("it does not speak HTTP: is the address right?"))],
  [/^ECONNREFUSED$/, passing("nothing listens there: is the address right, and does the service run?")],
  [/^EAI_AGAIN$/, passing("the name service did not answer")],
  [/^(EHOSTUNREACH|ENETUNREACH)$/, passing("there is no way to it")],
  [/^UND_ERR_CONNECT_TIMEOUT$/, passing("it did not answer")],
];

const UNKNOWN: Kind = { hint: null, isUnsent: false, isLasting: false };

/** Of a host that never answered. */
const CLOSED: Kind = {
  ...UNKNOWN,
  hint: "it closes the connection without an answer: is it an https:// address, and the right port?",
};

/** Deepest first: outer ones say only "failed". */
const causesOf = (error: unknown): readonly unknown[] =>
  error instanceof Error && error.cause !== undefined ? [...causesOf(error.cause), error] : [error];

const codeOf = (error: unknown): string | null =>
  error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : null;

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

export const troubleOf = (error: unknown, hasAnswered: boolean): Trouble => {
  const causes = causesOf(error);
  for (const cause of causes)
    for (const said of [codeOf(cause), messageOf(cause)]) {
      const [, kind] = KINDS.find(([form]) => said !== null && form.test(said)) ?? [];
      if (said !== null && kind !== undefined)
        return { said, ...kind, isLasting: kind.isLasting && !hasAnswered };
    }
  const [deepest] = causes;
  const said = codeOf(deepest) ?? messageOf(deepest);
  const isClosed = !hasAnswered && /^(UND_ERR_SOCKET|ECONNRESET)$/.test(said);
  return { said, ...(isClosed ? CLOSED : UNKNOWN) };
};
