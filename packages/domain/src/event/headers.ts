type HeaderValue = Uint8Array | string | null;

/** A header of the bus: absent, without a value, one value, or several. */
export type BusHeader = HeaderValue | readonly HeaderValue[] | undefined;
export type BusHeaders = Readonly<Record<string, BusHeader>>;

const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** The text of a header; null: it has none; undefined: it has several values, or one that is not UTF-8. */
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

/** The names among `names` whose headers cannot be read. */
export const badHeaders = (headers: BusHeaders, names: readonly string[]): string[] =>
  names.filter((name) => headerText(headers[name]) === undefined);
