import { isObject } from "../../lists/json-parts.ts";
import type { ListState } from "./target.ts";

const isTextOrNull = (value: unknown): boolean => value === null || typeof value === "string";
const isTexts = (value: unknown): boolean =>
  Array.isArray(value) && value.every((one) => typeof one === "string");
const isPlace = (value: unknown): boolean =>
  isObject(value) && typeof value["date"] === "string" && isTexts(value["ids"]);
const isFirstPass = (value: unknown): boolean =>
  value === null || (isObject(value) && (value["place"] === null || isPlace(value["place"])));

/** Half a state would resume at a wrong place. */
export const isListState = (value: unknown): value is ListState =>
  isObject(value) &&
  isTextOrNull(value["cursor"]) &&
  isTextOrNull(value["watermark"]) &&
  isTextOrNull(value["since"]) &&
  (value["fields"] === null || isTexts(value["fields"])) &&
  isFirstPass(value["firstPass"]) &&
  ["undefined", "boolean"].includes(typeof value["isPartial"]);
