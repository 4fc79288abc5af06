import { ServiceError, within } from "@conversation-export/runtime";
import type { FreshToken } from "./token-source.ts";

type Credentials = {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken?: string;
  readonly expiration?: Date;
};

const TIMEOUT_MS = 15_000;
/** A login with less would have to be renewed at once. */
const SHORTEST_LIFE_MS = 30_000;

const asServiceError = (error: unknown): ServiceError => {
  if (error instanceof ServiceError) return error;
  const { name, message } = error instanceof Error ? error : { name: "Error", message: String(error) };
  const status = (error as { $metadata?: { httpStatusCode?: number } }).$metadata?.httpStatusCode ?? 0;
  // Nothing of AWS's chain was found, or AWS refuses the role.
  const isFinal = name === "CredentialsProviderError" || (status >= 400 && status < 500 && status !== 429);
  return new ServiceError(
    isFinal ? "bus_token" : "bus_token_away",
    `no credentials of AWS to sign a token: ${name}: ${message.replaceAll(/\s+/g, " ").slice(0, 300)}`,
    { retryable: !isFinal },
  );
};

/**
 * Signs tokens for MSK with credentials of AWS.
 *
 * A token lives for 15 minutes, but not longer than the credentials: those are signed without their end,
 * since AWS's library would write a fraction of seconds into the token.
 *
 * @param credentials gives credentials that it renews by itself
 * @throws ServiceError `bus_token` without usable credentials, `bus_token_away` when asking again may help
 */
export const createMskSigner = (
  region: string,
  credentials: () => Promise<Credentials>,
): (() => Promise<FreshToken>) => {
  const sign = async (): Promise<FreshToken> => {
    // Loaded when it is needed: AWS's packages take memory and time at the start.
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
      return await within(sign(), TIMEOUT_MS, () => {
        throw new ServiceError("bus_token_away", `AWS gives no credentials within ${TIMEOUT_MS / 1000} s`, {
          retryable: true,
        });
      });
    } catch (error) {
      throw asServiceError(error);
    }
  };
};

/** Signs with what AWS's default chain finds: variables, the role of a service account, of a node, … */
export const createDefaultMskSigner = (region: string): (() => Promise<FreshToken>) => {
  let chain: Promise<() => Promise<Credentials>> | undefined;
  return createMskSigner(region, async () => {
    chain ??= import("@aws-sdk/credential-providers").then(({ fromNodeProviderChain }) =>
      fromNodeProviderChain({ clientConfig: { region } }),
    );
    return (await chain)();
  });
};
