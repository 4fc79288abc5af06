import type { Caller, Query } from "../http/caller.ts";
import { ExportAnswerError } from "../http/errors.ts";
import { isObject } from "./json-parts.ts";

type Meta = Readonly<Record<string, unknown>>;

export type Page<T> = {
  readonly data: readonly T[];
  readonly meta: Meta;
  readonly watermark: string | null;
  readonly text: string;
};

/** @throws ExportAnswerError */
export const readPage = async <T>(
  caller: Caller,
  path: string,
  query: Query = {},
  maxBytes?: number,
): Promise<Page<T>> => {
  const { headers, value, text } = await caller.json({ path, query, maxBytes });
  if (!isObject(value) || !Array.isArray(value["data"]) || !isObject(value["meta"])) {
    throw new ExportAnswerError(`the answer of ${path} is not a page`);
  }
  return {
    data: value["data"] as T[],
    meta: value["meta"],
    watermark: headers.get("x-export-watermark"),
    text,
  };
};

/** @throws ExportAnswerError */
export const textOfMeta = (meta: Meta, name: string): string | null => {
  const value = meta[name];
  if (value === null || typeof value === "string") return value;
  throw new ExportAnswerError(`a page has no ${name} in its meta`);
};

/** `link`: field of `meta`. */
export async function* walkPages<T>(
  caller: Caller,
  { path, query, link }: { readonly path: string; readonly query: Query; readonly link: string },
): AsyncGenerator<T, void> {
  let page = await readPage<T>(caller, path, query);
  const seen = new Set<string>();
  for (;;) {
    yield* page.data;
    const next = textOfMeta(page.meta, link);
    if (next === null) return;
    if (seen.has(next)) throw new ExportAnswerError("the link to the next page repeats itself");
    seen.add(next);
    page = await readPage<T>(caller, next);
  }
}
