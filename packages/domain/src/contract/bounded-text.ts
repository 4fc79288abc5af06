import { z } from "zod";

/** Whether a text has at most `most` characters, counted as JSON Schema counts them: a surrogate pair is one. */
export const hasAtMost = (text: string, most: number): boolean =>
  text.length <= most || (text.length <= 2 * most && Array.from(text).length <= most);

/** Text of a request with at most `most` characters, and without halves of surrogate pairs, which have no UTF-8. */
export const boundedText = (most: number, message = `must have at most ${most} characters`) =>
  z
    .string()
    // Not zod's own maximum, which counts the units of UTF-16.
    .refine((text) => hasAtMost(text, most), message)
    .refine((text) => text.isWellFormed(), "holds half a surrogate pair")
    .meta({ maxLength: most });
