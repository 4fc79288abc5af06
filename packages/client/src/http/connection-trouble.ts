/** Why a host was not reached. */
export type Trouble = {
  /** What the runtime says about it. */
  readonly said: string;
  /** What is wrong and what to do, where that is known. */
  readonly hint: string | null;
  /** Nothing was sent. */
  readonly isUnsent: boolean;
  /** The next attempt ends in the same way, unless the host has answered before. */
  readonly isLasting: boolean;
};

type Kind = Pick<Trouble, "hint" | "isUnsent" | "isLasting">;

const lasting = (hint: string): Kind => ({ hint, isUnsent: true, isLasting: true });
const passing = (hint: string | null): Kind => ({ hint, isUnsent: true, isLasting: false });

/** By the codes of Node.js; the first one that fits counts. */
const KINDS: readonly (readonly [RegExp, Kind])[] = [
  [/^CERT_HAS_EXPIRED$/, lasting("its certificate has expired")],
  [/^CERT_NOT_YET_VALID$/, lasting("its certificate is not valid yet: is the clock of this machine right?")],
  [
    /^ERR_TLS_CERT_ALTNAME_INVALID$/,
    lasting("its certificate is for another name: give the address with a name that it has"),
  ],
  [
    /CERT|^UNABLE_TO_|^INVALID_(CA|PURPOSE)$|^PATH_LENGTH_EXCEEDED$|^HOSTNAME_MISMATCH$/,
    lasting(
      "its certificate is not trusted: name a file with the certificate of its authority in NODE_EXTRA_CA_CERTS",
    ),
  ],
  [/^ERR_SSL_|^EPROTO$/, lasting("it does not speak TLS as it should: is the address one of http://?")],
  [/^ENOTFOUND$/, lasting("no such host is known: is the address right?")],
  [/^bad port$/, lasting("requests to this port are not sent: is the address right?")],
  [
    /does not match the HTTP/,
    { ...lasting("it does not speak HTTP: is the address right?"), isUnsent: false },
  ],
  [/^ECONNREFUSED$/, passing("nothing listens there: is the address right, and does the service run?")],
  [/^EAI_AGAIN$/, passing("the name service did not answer")],
  [/^(EHOSTUNREACH|ENETUNREACH)$/, passing("there is no way to it")],
  [/^UND_ERR_CONNECT_TIMEOUT$/, passing("it did not answer")],
];

const UNKNOWN: Kind = { hint: null, isUnsent: false, isLasting: false };

/** What `fetch` or a body threw: browsers say next to nothing, Node.js has a cause with a code. */
export const troubleOf = (error: unknown): Trouble => {
  const cause = error instanceof Error ? (error.cause ?? error) : error;
  const code =
    cause instanceof Error && "code" in cause && typeof cause.code === "string" ? cause.code : null;
  const said = code ?? (cause instanceof Error ? cause.message : String(cause));
  const [, kind] = KINDS.find(([form]) => form.test(said)) ?? [undefined, UNKNOWN];
  return { said, ...kind };
};
