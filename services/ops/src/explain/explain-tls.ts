import { type TlsTrouble, tlsTroubleOf } from "@conversation-export/runtime";

export type TlsWords = {
  readonly server: string;
  readonly address: string;
  readonly authorities: string;
  readonly switchOn: string;
  readonly switchOff: string;
  /** Variables; null: none. */
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
    other_name: `the certificate of ${server} at ${where} is for another host (${code}): use a name from the certificate in ${address}`,
    out_of_date: `the certificate of ${server} at ${where} has expired or is not yet valid (${code}): renew it, or set the clock of this machine`,
    no_tls: `${server} does not speak TLS at ${where}: use its TLS port in ${address}, or ${words.switchOff}`,
    client_certificate:
      words.ownCertificate === null
        ? `${server} at ${where} demands a client certificate, which is not supported here (${code}): let it ask only for a password`
        : `${server} at ${where} does not accept this client's certificate, or demands one (${code}): set ${words.ownCertificate}`,
    bad_certificate: `the certificate of ${server} at ${where} is not accepted (${code}): look at it with \`openssl s_client -connect ${where.split(", ")[0] ?? where}\``,
  };
};

/** undefined for other codes. */
export const explainTls = (words: TlsWords, where: string, code: string): string | undefined => {
  const trouble = tlsTroubleOf(code);
  return trouble === undefined ? undefined : sentences(words, where, code)[trouble];
};

export const explainTlsOnly = ({ server, switchOn }: TlsWords, where: string): string =>
  `${server} speaks only TLS at ${where}: ${switchOn}`;
