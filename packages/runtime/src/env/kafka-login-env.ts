import { z } from "zod";
import { credential } from "./credentials.ts";

const PASSWORD_MECHANISMS = ["plain", "scram-sha-256", "scram-sha-512"] as const;
const MECHANISMS = [...PASSWORD_MECHANISMS, "oauthbearer", "aws-msk-iam"] as const;
type PasswordMechanism = (typeof PASSWORD_MECHANISMS)[number];

export type TokenEndpoint = {
  readonly url: string;
  readonly clientId: string;
  readonly clientSecret: string;
  /** In the header `Authorization`, or among the request's fields. */
  readonly clientAuth: "basic" | "post";
  readonly scope?: string;
  readonly parameters: Readonly<Record<string, string>>;
};

export type KafkaLogin =
  | { readonly mechanism: PasswordMechanism; readonly username: string; readonly password: string }
  | {
      readonly mechanism: "oauthbearer";
      readonly endpoint: TokenEndpoint;
      readonly extensions: Readonly<Record<string, string>>;
    }
  | { readonly mechanism: "aws-msk-iam"; readonly region: string };

const LOOPBACK = /^(localhost|127(\.\d{1,3}){3}|\[::1\])$/;

const isTokenUrl = (text: string): boolean => {
  if (!URL.canParse(text)) return false;
  const { protocol, username, password, hash } = new URL(text);
  return /^https?:$/.test(protocol) && username === "" && password === "" && hash === "";
};

const fields = z.string().transform((text, context): Record<string, string> => {
  const pairs = [...new URLSearchParams(text)];
  const found = Object.fromEntries(pairs);
  const isWhole = pairs.every(([name, value]) => name !== "" && value !== "");
  if (isWhole && pairs.length === Object.keys(found).length) return found;
  context.addIssue("must be name=value&name=value with each name once, special characters percent-encoded");
  return z.NEVER;
});

const OWN_FIELDS = ["grant_type", "client_id", "client_secret", "scope"];

// What RFC 7628 and Kafka's brokers accept.
const isExtension = ([name, value]: [string, string]): boolean =>
  /^[A-Za-z]+$/.test(name) && name.toLowerCase() !== "auth" && /^[\x20-\x7e]+$/.test(value);

export const LOGIN_VARIABLES = {
  KAFKA_SASL_MECHANISM: z.enum(MECHANISMS, `must be one of ${MECHANISMS.join(", ")}`).optional(),
  KAFKA_SASL_USERNAME: credential.optional(),
  KAFKA_SASL_PASSWORD: credential.optional(),
  KAFKA_OAUTH_TOKEN_URL: z
    .string()
    .refine(isTokenUrl, "must be an https address without user, password and fragment")
    .optional(),
  KAFKA_OAUTH_PLAIN_HTTP: z.enum(["on", "off"], "must be on or off").optional(),
  KAFKA_OAUTH_CLIENT_ID: credential.optional(),
  KAFKA_OAUTH_CLIENT_SECRET: credential.optional(),
  KAFKA_OAUTH_CLIENT_AUTH: z.enum(["basic", "post"], "must be basic or post").optional(),
  KAFKA_OAUTH_SCOPE: z
    .string()
    .regex(/^[\x20-\x7e]+$/, "must be scopes with spaces between them")
    .optional(),
  KAFKA_OAUTH_PARAMETERS: fields
    .refine(
      (given) => OWN_FIELDS.every((name) => !(name in given)),
      "must not hold grant_type, client_id, client_secret or scope",
    )
    .optional(),
  KAFKA_OAUTH_EXTENSIONS: fields
    .refine(
      (given) => Object.entries(given).every(isExtension),
      "names must be letters other than auth, values visible ASCII",
    )
    .optional(),
  KAFKA_AWS_REGION: z
    .string()
    .regex(/^[a-z]{2,}(-[a-z]+)+-\d+$/, "must be a region such as eu-central-1")
    .optional(),
};

type Values = z.output<z.ZodObject<typeof LOGIN_VARIABLES>> & { readonly KAFKA_TLS: "on" | "off" };
type Name = keyof typeof LOGIN_VARIABLES;

const NEEDS: Readonly<Record<"password" | "oauthbearer" | "aws-msk-iam", readonly Name[]>> = {
  password: ["KAFKA_SASL_USERNAME", "KAFKA_SASL_PASSWORD"],
  oauthbearer: ["KAFKA_OAUTH_TOKEN_URL", "KAFKA_OAUTH_CLIENT_ID", "KAFKA_OAUTH_CLIENT_SECRET"],
  "aws-msk-iam": ["KAFKA_AWS_REGION"],
};

const isPassword = (mechanism: string): mechanism is PasswordMechanism =>
  PASSWORD_MECHANISMS.some((one) => one === mechanism);

const mechanismOf = (name: Name): string => {
  if (name.startsWith("KAFKA_OAUTH_")) return "oauthbearer";
  return name === "KAFKA_AWS_REGION" ? "aws-msk-iam" : PASSWORD_MECHANISMS.join(", ");
};

export const loginProblems = (values: Values): string[] => {
  const { KAFKA_SASL_MECHANISM: mechanism, KAFKA_OAUTH_TOKEN_URL: url } = values;
  const given = (Object.keys(LOGIN_VARIABLES) as Name[]).filter(
    (name) => values[name] !== undefined && name !== "KAFKA_SASL_MECHANISM",
  );
  if (mechanism === undefined) {
    const [first] = given;
    return first === undefined ? [] : [`KAFKA_SASL_MECHANISM: is required with ${first}`];
  }
  const needs = NEEDS[isPassword(mechanism) ? "password" : mechanism];
  const fits = (name: Name): boolean => mechanismOf(name).split(", ").includes(mechanism);
  const isPlain = url !== undefined && new URL(url).protocol === "http:";
  const mayBePlain =
    values.KAFKA_OAUTH_PLAIN_HTTP === "on" || (url !== undefined && LOOPBACK.test(new URL(url).hostname));
  return [
    ...needs
      .filter((name) => values[name] === undefined)
      .map(
        (name) =>
          `${name}: is required with KAFKA_SASL_MECHANISM${isPassword(mechanism) ? "" : `=${mechanism}`}`,
      ),
    ...given
      .filter((name) => !fits(name))
      .map((name) => `${name}: counts only with KAFKA_SASL_MECHANISM ${mechanismOf(name)}; leave it out`),
    ...(isPlain && !mayBePlain
      ? [
          "KAFKA_OAUTH_TOKEN_URL: must begin with https://, since the request holds the secret; KAFKA_OAUTH_PLAIN_HTTP=on allows http",
        ]
      : []),
    ...(mechanism === "aws-msk-iam" && values.KAFKA_TLS === "off"
      ? ["KAFKA_TLS: must be on with KAFKA_SASL_MECHANISM=aws-msk-iam"]
      : []),
  ];
};

/** For values without `loginProblems`. */
export const loginOf = (values: Values): KafkaLogin | undefined => {
  const { KAFKA_SASL_MECHANISM: mechanism, KAFKA_OAUTH_SCOPE: scope } = values;
  if (mechanism === undefined) return undefined;
  if (mechanism === "aws-msk-iam") return { mechanism, region: values.KAFKA_AWS_REGION ?? "" };
  if (mechanism === "oauthbearer") {
    return {
      mechanism,
      endpoint: {
        url: values.KAFKA_OAUTH_TOKEN_URL ?? "",
        clientId: values.KAFKA_OAUTH_CLIENT_ID ?? "",
        clientSecret: values.KAFKA_OAUTH_CLIENT_SECRET ?? "",
        clientAuth: values.KAFKA_OAUTH_CLIENT_AUTH ?? "basic",
        ...(scope !== undefined && { scope }),
        parameters: values.KAFKA_OAUTH_PARAMETERS ?? {},
      },
      extensions: values.KAFKA_OAUTH_EXTENSIONS ?? {},
    };
  }
  return {
    mechanism,
    username: values.KAFKA_SASL_USERNAME ?? "",
    password: values.KAFKA_SASL_PASSWORD ?? "",
  };
};
