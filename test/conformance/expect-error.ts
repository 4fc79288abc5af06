import { expect } from "vitest";
import type { Answer, ErrorItem } from "./call.ts";

/** Expects the body of section 7 with exactly one error, and returns it. */
export const expectError = ({ body, headers }: Pick<Answer, "body" | "headers">, type: string): ErrorItem => {
  expect(headers.get("content-type")).toBe("application/json");
  const { errors } = body as { errors: [ErrorItem] };
  const details = errors[0].details;
  expect(body).toEqual({ errors: [{ type, message: expect.any(String) as string, details }] });
  expect(errors[0].message).not.toBe("");
  if (details !== null) expect(details).toEqual(expect.any(String));
  return errors[0];
};
