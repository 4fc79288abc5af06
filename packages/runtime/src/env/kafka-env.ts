import { z } from "zod";
import { type Environment, parseEnv } from "./env.ts";
import { ConfigError } from "../errors.ts";
import { type KafkaLogin, LOGIN_VARIABLES, loginOf, loginProblems } from "./kafka-login-env.ts";
import { isPair, readCertificates, readPrivateKey } from "./pem-file.ts";

export type KafkaServers = {
  readonly brokers: readonly string[];
  /** PEM texts; absent: no TLS; without `ca`: the authorities that Node trusts. */
  readonly ssl?: {
    readonly ca?: string;
    readonly cert?: string;
    readonly key?: string;
  };
  readonly sasl?: KafkaLogin;
};

// kafkajs splits at the first colon, so IPv6 addresses cannot be given.
const isBroker = (text: string): boolean => {
  const [, port] = /^[^\s:/@]+:(\d{1,5})$/.exec(text) ?? [];
  return port !== undefined && Number(port) >= 1 && Number(port) <= 65_535;
};

const schema = z.object({
  KAFKA_BROKERS: z
    .string()
    .transform((list) => list.split(",").map((broker) => broker.trim()))
    .refine(
      (brokers) => brokers.every(isBroker),
      "must be host:port,host:port,… with names or IPv4 addresses",
    ),
  KAFKA_TLS: z.enum(["on", "off"], "must be on or off").default("off"),
  KAFKA_CA_FILE: z.string().optional(),
  KAFKA_CERT_FILE: z.string().optional(),
  KAFKA_KEY_FILE: z.string().optional(),
  ...LOGIN_VARIABLES,
});
type Values = z.output<typeof schema>;

const FILES = ["KAFKA_CA_FILE", "KAFKA_CERT_FILE", "KAFKA_KEY_FILE"] as const;
const PAIRS = [
  ["KAFKA_CERT_FILE", "KAFKA_KEY_FILE"],
  ["KAFKA_KEY_FILE", "KAFKA_CERT_FILE"],
] as const;

const problemsOf = (values: Values): string[] => [
  ...FILES.filter((name) => values.KAFKA_TLS === "off" && values[name] !== undefined).map(
    (name) => `${name}: counts only with KAFKA_TLS=on; set that, or leave this out`,
  ),
  ...PAIRS.filter(([given, needed]) => values[given] !== undefined && values[needed] === undefined).map(
    ([given, needed]) => `${needed}: is required with ${given}`,
  ),
  ...loginProblems(values),
];

const readSsl = (values: Values): NonNullable<KafkaServers["ssl"]> => {
  const read = <T>(name: (typeof FILES)[number], from: (variable: string, path: string) => T) => {
    const path = values[name];
    return path === undefined ? undefined : from(name, path);
  };
  const ca = read("KAFKA_CA_FILE", readCertificates);
  const cert = read("KAFKA_CERT_FILE", readCertificates);
  const key = read("KAFKA_KEY_FILE", readPrivateKey);
  if (cert !== undefined && key !== undefined && !isPair(cert, key)) {
    throw new ConfigError(["KAFKA_KEY_FILE: is not the key of the certificate in KAFKA_CERT_FILE"]);
  }
  return {
    ...(ca !== undefined && { ca }),
    ...(cert !== undefined && key !== undefined && { cert, key }),
  };
};

export const readKafkaServers = (env: Environment): KafkaServers => {
  const values = parseEnv(schema, env);
  const problems = problemsOf(values);
  if (problems.length > 0) throw new ConfigError(problems);
  const sasl = loginOf(values);
  return {
    brokers: values.KAFKA_BROKERS,
    ...(values.KAFKA_TLS === "on" && { ssl: readSsl(values) }),
    ...(sasl !== undefined && { sasl }),
  };
};
