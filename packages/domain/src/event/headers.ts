type HeaderValue = Uint8Array | string | null;

export type BusHeader = HeaderValue | readonly HeaderValue[] | undefined;
export type BusHeaders = Readonly<Record<string, BusHeader>>;

const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** null: none; undefined: several values, or not UTF-8. */
export const headerText = (header: BusHeader): string | null | undefined => {
  if (header === undefined || header === null) return null;
  if (typeof header === "string") return header;
  if (!(header instanceof Uint8Array)) return undefined;
  try {
    return utf8.decode(header);
  } catch {
    return undefined;
  }
};
