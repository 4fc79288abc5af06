import { ServiceError, within } from "@conversation-export/runtime";
import type { FreshToken } from "./token-source.ts";

type Credentials = {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken?: string;
  readonly expiration?: Date;
};

const TIMEOUT_MS = 15_000;
const SHORTEST_LIFE_MS = 30_000;

/** Brokers reject another one on an open connection. */
const SESSION_NAME = "conversation-export";

/** Others may pass: throttling has the status 400, too. */
const FINAL =
  /^(AccessDenied|CredentialsProvider|ExpiredToken|IDPRejectedClaim|InvalidClientTokenId|InvalidIdentityToken|RegionDisabled|SignatureDoesNotMatch|UnrecognizedClient|Validation)(Error|Exception)?$/;

const asServiceError = (error: unknown, mayBeFinal: boolean): ServiceError => {
  if (error instanceof ServiceError) return error;
  const { name, message } = error instanceof Error ? error : { name: "Error", message: String(error) };
  const isFinal = mayBeFinal && (FINAL.test(name) || (error as NodeJS.ErrnoException).code === "ENOENT");
  return new ServiceError(
    isFinal ? "bus_token" : "bus_token_away",
    `no credentials of AWS to sign a token: ${name}: ${message.replaceAll(/\s+/g, " ").slice(0, 300)}`,
    { retryable: !isFinal },
  );
};

/** `bus_token`: none usable; `bus_token_away`: may pass, as always after a first token. */
export const createMskSigner = (
  region: string,
  credentials: () => Promise<Credentials>,
): (() => Promise<FreshToken>) => {
  let hasSigned = false;
  const sign = async (): Promise<FreshToken> => {
    // AWS's packages take memory and time.
    const { generateAuthTokenFromCredentialsProvider } = await import("aws-msk-iam-sasl-signer-js");
    const { expiration, ...lasting } = await credentials();
    const { token, expiryTime } = await generateAuthTokenFromCredentialsProvider({
      region,
      awsCredentialsProvider: () => Promise.resolve(lasting),
    });
    const end = Math.min(expiryTime, expiration?.getTime() ?? Infinity);
    const livesMs = end - Date.now();
    if (livesMs >= SHORTEST_LIFE_MS) return { value: token, livesMs };
    throw new ServiceError("bus_token_away", "the credentials of AWS end before a token could be used", {
      retryable: true,
    });
  };
  return async () => {
    try {
      const signed = await within(sign(), TIMEOUT_MS, () => {
        throw new ServiceError("bus_token_away", `AWS gives no credentials within ${TIMEOUT_MS / 1000} s`, {
          retryable: true,
        });
      });
      hasSigned = true;
      return signed;
    } catch (error) {
      throw asServiceError(error, !hasSigned);
    }
  };
};

/** By AWS's default chain. */
export const createDefaultMskSigner = (
  region: string,
  // AWS's chain reads the environment by itself.
  // oxlint-disable-next-line node/no-process-env
  env: Readonly<Record<string, string | undefined>> = process.env,
): (() => Promise<FreshToken>) => {
  const roleSessionName = env["AWS_ROLE_SESSION_NAME"] ?? SESSION_NAME;
  const hasAgent =
    (env["AWS_CONTAINER_CREDENTIALS_FULL_URI"] ?? env["AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"]) !==
    undefined;
  let chain: Promise<() => Promise<Credentials>> | undefined;
  return createMskSigner(region, async () => {
    chain ??= import("@aws-sdk/credential-providers").then(({ fromNodeProviderChain }) =>
      fromNodeProviderChain({ clientConfig: { region }, roleSessionName }),
    );
    try {
      return await (await chain)();
    } catch (error) {
      // The chain has one error for an agent that is away and for no configuration.
      if (!hasAgent || !(error instanceof Error) || error.name !== "CredentialsProviderError") throw error;
      throw new ServiceError("bus_token_away", `AWS's agent gives no credentials: ${error.message}`, {
        retryable: true,
      });
    }
  });
};
