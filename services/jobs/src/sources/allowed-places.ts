import { resolve } from "node:path";
import { ServiceError } from "@conversation-export/runtime";
import type { FileStore } from "./file-store.ts";

const OBJECTS = "s3://";

/**
 * The form in which places are compared: a folder without `..`, an object as it is; without a slash at the
 * end.
 */
const formOf = (location: string): string =>
  (location.startsWith(OBJECTS) ? location : resolve(location)).replace(/\/$/, "");

const isWithin = (location: string, place: string): boolean => {
  const [one, allowed] = [formOf(location), formOf(place)];
  return one === allowed || one.startsWith(`${allowed}/`);
};

/**
 * A store that reads nothing outside of the allowed places: jobs and their parts come from Redis, and files
 * become records of any client.
 *
 * @param places folders and `s3://bucket/prefix`
 * @throws ServiceError `source_not_allowed` from both methods
 */
export const withinPlaces = (store: FileStore, places: readonly string[]): FileStore => {
  const require = (location: string): void => {
    if (places.some((place) => isWithin(location, place))) return;
    throw new ServiceError(
      "source_not_allowed",
      `${location} lies in none of the places that BACKFILL_LOCATIONS of jobs names`,
    );
  };
  return {
    list: async (location, signal) => {
      require(location);
      return store.list(location, signal);
    },
    open: (file, signal) => {
      require(file.location);
      return store.open(file, signal);
    },
  };
};
