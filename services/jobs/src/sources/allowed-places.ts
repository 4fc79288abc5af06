import { realpath } from "node:fs/promises";
import { resolve } from "node:path";
import { ServiceError } from "@conversation-export/runtime";
import type { FileStore } from "./file-store.ts";

const OBJECTS = "s3://";

const formOf = (location: string): string =>
  (location.startsWith(OBJECTS) ? location : resolve(location)).replace(/\/$/, "");

/** Object servers may resolve it in an address. */
const DOTS = /\/\.\.?(?:\/|$)/;

const isWithin = (location: string, place: string): boolean => {
  if (location.startsWith(OBJECTS) && DOTS.test(location)) return false;
  const [one, allowed] = [formOf(location), formOf(place)];
  return one === allowed || one.startsWith(`${allowed}/`);
};

/** null: nowhere, as the store will report. */
const realPath = (path: string): Promise<string | null> => realpath(path).catch(() => null);

/**
 * Reads nothing outside, not through links either: jobs come from Redis, and files become records of any client.
 * @throws ServiceError `source_not_allowed`
 */
export const withinPlaces = (store: FileStore, places: readonly string[]): FileStore => {
  const refuse = (what: string): never => {
    throw new ServiceError(
      "source_not_allowed",
      `${what} none of the places that BACKFILL_LOCATIONS of jobs names`,
    );
  };
  const require = async (location: string): Promise<void> => {
    if (!places.some((place) => isWithin(location, place))) refuse(`${location} lies in`);
    if (location.startsWith(OBJECTS)) return;
    const target = await realPath(resolve(location));
    if (target === null) return;
    const folders = places.filter((place) => !place.startsWith(OBJECTS));
    const real = await Promise.all(folders.map((place) => realPath(resolve(place))));
    if (!real.some((place) => place !== null && isWithin(target, place)))
      refuse(`${location} is a symbolic link that leads to`);
  };
  return {
    list: async (location, signal) => {
      await require(location);
      const files = await store.list(location, signal);
      for (const file of files) {
        signal.throwIfAborted();
        if (file.location !== location) await require(file.location);
      }
      return files;
    },
    open: async function* (file, signal) {
      await require(file.location);
      yield* store.open(file, signal);
    },
  };
};
