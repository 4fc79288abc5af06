import { z } from "zod";
import { holdsDoubles, isObject } from "../json/json-object.ts";

// Fields may be absent: the documented example data is inconsistent.
export const text = z.string().nullish();
export const number = z.number().nullish();
export const flag = z.boolean().nullish();

/** `object`: `{}` instead of null. */
export const FIELD_FORMS = z.registry<{ readonly form: "date" | "object" }>();

export const instant = z.string().register(FIELD_FORMS, { form: "date" });
export const date = instant.nullish();

// z.record would walk and copy values that are kept as they came.
const anyObject = () =>
  z
    .custom<Record<string, unknown>>(isObject, "is not an object")
    .refine(holdsDoubles, "holds a number beyond a double")
    .meta({ type: "object" });
export const freeForm = anyObject().nullish();
export const variables = anyObject().register(FIELD_FORMS, { form: "object" }).nullish();
export const listOf = <Item extends z.ZodObject>(item: Item) => z.array(item).nullish();

export const MAX_ID_LENGTH = 1_000;

export const IDS = z.registry<{ readonly isId: true }>();

const bounded = z
  .string()
  .max(MAX_ID_LENGTH, `must have at most ${MAX_ID_LENGTH} characters`)
  .register(IDS, { isId: true });
// In keys, links and cursors: bounded, and half surrogate pairs have no UTF-8.
export const identifierOrEmpty = bounded.refine((id) => id.isWellFormed(), "holds half a surrogate pair");
export const identifier = identifierOrEmpty.min(1, "must not be empty");
export const personId = bounded.nullish();
