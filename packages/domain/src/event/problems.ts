import type { z } from "zod";

type Issue = z.core.$ZodIssue;

const MAX_NAMED = 20;

const KINDS: Readonly<Record<string, string>> = {
  string: "text",
  number: "a number",
  int: "a whole number",
  boolean: "true or false",
  array: "a list",
  object: "an object",
};

const valueAt = (value: unknown, path: Issue["path"]): unknown =>
  path.reduce<unknown>(
    (at, key) =>
      typeof at === "object" && at !== null ? (at as Record<PropertyKey, unknown>)[key] : undefined,
    value,
  );

const inWords = (issue: Issue, value: unknown): string => {
  if (value === undefined || value === null) return value === null ? "is null" : "is missing";
  switch (issue.code) {
    case "invalid_type":
      return `is not ${KINDS[issue.expected] ?? issue.expected}`;
    case "too_small":
      return issue.origin === "string" ? "is empty" : "is too small";
    case "too_big":
      return issue.origin === "string" ? `has more than ${issue.maximum} characters` : "is too large";
    case "invalid_value":
      return `is not ${issue.values.map((one) => JSON.stringify(one)).join(" or ")}`;
    default:
      return issue.message;
  }
};

/** Never names values. */
export const problemsOf = (issues: readonly Issue[], given: unknown): string[] =>
  issues.map((issue) => {
    const path = issue.path.map(String).join(".");
    return `${path === "" ? "it" : path} ${inWords(issue, valueAt(given, issue.path))}`;
  });

export const detailOf = (problems: readonly string[]): string => {
  const more = problems.length - MAX_NAMED;
  return [...problems.slice(0, MAX_NAMED), ...(more > 0 ? [`and ${more} more`] : [])].join("; ");
};
