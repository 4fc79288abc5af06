import { type TlsTrouble, tlsTroubleOf } from "@conversation-export/runtime";

/** A server as messages call it, and what a person sets for TLS with it. */
export type TlsWords = {
  readonly server: string;
  /** Where its address stands. */
  readonly address: string;
  readonly authorities: string;
  readonly switchOn: string;
  readonly switchOff: string;
  /** Certificate and key of the client; null: it can show none. */
  readonly ownCertificate: string | null;
};

export const KAFKA_TLS: TlsWords = {
  server: "Kafka",
  address: "KAFKA_BROKERS",
  authorities: "KAFKA_CA_FILE",
  switchOn: "set KAFKA_TLS=on",
  switchOff: "set KAFKA_TLS=off",
  ownCertificate: "KAFKA_CERT_FILE and KAFKA_KEY_FILE",
};
export const REDIS_TLS: TlsWords = {
  server: "Redis",
  address: "REDIS_URL",
  authorities: "REDIS_CA_FILE",
  switchOn: "write rediss: in REDIS_URL",
  switchOff: "write redis: in it",
  ownCertificate: null,
};
export const CLICKHOUSE_TLS: TlsWords = {
  server: "ClickHouse",
  address: "CLICKHOUSE_URL",
  authorities: "CLICKHOUSE_CA_FILE",
  switchOn: "write https: in CLICKHOUSE_URL",
  switchOff: "write http: in it",
  ownCertificate: null,
};

const sentences = (words: TlsWords, where: string, code: string): Readonly<Record<TlsTrouble, string>> => {
  const { server, address } = words;
  return {
    unknown_authority: `the certificate of ${server} at ${where} is not signed by an authority that is trusted here (${code}): give that authority's certificate in ${words.authorities}`,
    other_name: `the certificate of ${server} at ${where} is for another host (${code}): use a name that it holds in ${address}`,
    out_of_date: `the certificate of ${server} at ${where} has expired or does not count yet (${code}): renew it, or set the clock of this machine`,
    no_tls: `${server} does not speak TLS at ${where}: name its port for TLS in ${address}, or ${words.switchOff}`,
    client_certificate:
      words.ownCertificate === null
        ? `${server} at ${where} wants a certificate of its clients (${code}): let it ask for a password alone`
        : `${server} at ${where} does not accept this client's certificate, or that it has none (${code}): set ${words.ownCertificate}`,
    bad_certificate: `the certificate of ${server} at ${where} is not accepted (${code}): look at it with \`openssl s_client -connect ${where.split(", ")[0] ?? where}\``,
  };
};

/** What is wrong with TLS and what to do, by the code of an error; undefined: it says nothing about TLS. */
export const explainTls = (words: TlsWords, where: string, code: string): string | undefined => {
  const trouble = tlsTroubleOf(code);
  return trouble === undefined ? undefined : sentences(words, where, code)[trouble];
};

/** The server is asked without TLS and speaks nothing else. */
export const explainTlsOnly = ({ server, switchOn }: TlsWords, where: string): string =>
  `${server} speaks only TLS at ${where}: ${switchOn}`;
