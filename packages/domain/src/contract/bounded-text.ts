import { z } from "zod";

/** A surrogate pair is one character, as in JSON Schema. */
export const hasAtMost = (text: string, most: number): boolean =>
  text.length <= most || (text.length <= 2 * most && Array.from(text).length <= most);

/** Rejects half surrogate pairs, which have no UTF-8. */
export const boundedText = (most: number, message = `must have at most ${most} characters`) =>
  z
    .string()
    .refine((text) => hasAtMost(text, most), message)
    .refine((text) => text.isWellFormed(), "holds half a surrogate pair")
    .meta({ maxLength: most });
