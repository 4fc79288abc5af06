import { GetObjectCommand, paginateListObjectsV2, S3Client, S3ServiceException } from "@aws-sdk/client-s3";
import { isRetryable, retry, ServiceError } from "@conversation-export/runtime";
import type { SourceFile } from "./event-source.ts";
import { byLocation, type FileStore, hasLines } from "./file-store.ts";

const ATTEMPTS_DEADLINE_MS = 60_000;

function placeOf(location: string): { bucket: string; key: string } {
  const [, bucket, key] = /^s3:\/\/([^/]+)\/?(.*)$/s.exec(location) ?? [];
  if (bucket === undefined || key === undefined) {
    throw new ServiceError("source_unreadable", `${location} is not s3://bucket/prefix`);
  }
  return { bucket, key };
}

const isFinal = (error: S3ServiceException): boolean => {
  const status = error.$metadata.httpStatusCode ?? 500;
  return status < 500 && status !== 408 && status !== 429;
};

function trouble(location: string, error: unknown): ServiceError {
  if (error instanceof ServiceError) return error;
  const final = error instanceof S3ServiceException && isFinal(error);
  if (error instanceof S3ServiceException && error.$metadata.httpStatusCode === 412) {
    return new ServiceError("source_changed", `${location} is not the object that was there`);
  }
  const why = error instanceof Error ? error.name : "unknown";
  return new ServiceError("source_unreadable", `cannot read ${location}: ${why}`, {
    retryable: !final,
    cause: error,
  });
}

/** An interrupted download resumes. */
export function createS3Store(deps: {
  /** null: AWS. */
  readonly endpoint: string | null;
  /** null: the SDK finds it. */
  readonly region: string | null;
}): FileStore & { close(): void } {
  const { endpoint, region } = deps;
  let made: S3Client | undefined;
  const client = (): S3Client =>
    (made ??= new S3Client({
      ...(endpoint === null ? {} : { endpoint, forcePathStyle: true }),
      ...(region === null ? (endpoint === null ? {} : { region: "us-east-1" }) : { region }),
    }));

  async function bodyFrom(file: SourceFile, position: number, signal: AbortSignal) {
    const { bucket, key } = placeOf(file.location);
    const { Body } = await client().send(
      new GetObjectCommand({
        Bucket: bucket,
        Key: key,
        IfMatch: file.tag,
        ...(position === 0 ? {} : { Range: `bytes=${position}-` }),
      }),
      { abortSignal: signal },
    );
    if (Body === undefined) throw new ServiceError("source_unreadable", `${file.location} has no content`);
    return (Body as AsyncIterable<Uint8Array>)[Symbol.asyncIterator]();
  }

  return {
    list: async (location, signal) => {
      const { bucket, key: prefix } = placeOf(location);
      const files: SourceFile[] = [];
      try {
        const pages = paginateListObjectsV2(
          { client: client() },
          { Bucket: bucket, Prefix: prefix },
          { abortSignal: signal },
        );
        for await (const { Contents = [] } of pages) {
          for (const { Key: key = "", Size: size = 0, ETag: tag = "" } of Contents) {
            if (key !== prefix && !hasLines(key)) continue;
            if (!key.endsWith("/")) files.push({ location: `s3://${bucket}/${key}`, size, tag });
          }
        }
      } catch (error) {
        signal.throwIfAborted();
        throw trouble(location, error);
      }
      return files.sort(byLocation);
    },
    open: async function* (file, signal) {
      let position = 0;
      let body: AsyncIterator<Uint8Array> | undefined;
      const next = (): Promise<IteratorResult<Uint8Array>> =>
        retry(
          async () => {
            try {
              // S3 rejects a range after the last byte.
              if (body === undefined && position > 0 && position >= file.size)
                return { done: true, value: null };
              body ??= await bodyFrom(file, position, signal);
              return await body.next();
            } catch (error) {
              body = undefined;
              signal.throwIfAborted();
              throw trouble(file.location, error);
            }
          },
          { signal, deadlineMs: ATTEMPTS_DEADLINE_MS, retryable: isRetryable },
        );
      try {
        for (let step = await next(); step.done !== true; step = await next()) {
          position += step.value.length;
          yield Buffer.from(step.value.buffer, step.value.byteOffset, step.value.length);
        }
        if (position < file.size) {
          throw new ServiceError("source_unreadable", `${file.location} ends early`, { retryable: true });
        }
      } finally {
        await body?.return?.();
      }
    },
    close: () => made?.destroy(),
  };
}
