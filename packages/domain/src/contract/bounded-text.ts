import { z } from "zod";

/** Counts as JSON Schema does: a surrogate pair is one character. */
export const hasAtMost = (text: string, most: number): boolean =>
  text.length <= most || (text.length <= 2 * most && Array.from(text).length <= most);

/** Rejects half surrogate pairs, which have no UTF-8. */
export const boundedText = (most: number, message = `must have at most ${most} characters`) =>
  z
    .string()
    // Not zod's own maximum, which counts UTF-16 units.
    .refine((text) => hasAtMost(text, most), message)
    .refine((text) => text.isWellFormed(), "holds half a surrogate pair")
    .meta({ maxLength: most });
