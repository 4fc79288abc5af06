import { ServiceError } from "@conversation-export/runtime";
import type { z } from "zod";

/** Throws ServiceError `code` with the fields' names, never their values. */
export const check = <T>(code: string, schema: z.ZodType<T>, value: unknown): T => {
  const parsed = schema.safeParse(value, { reportInput: false });
  if (parsed.success) return parsed.data;
  const fields = parsed.error.issues.map((issue) => issue.path.join(".") || "(all)");
  throw new ServiceError(code, `wrong: ${[...new Set(fields)].slice(0, 10).join(", ")}`);
};
