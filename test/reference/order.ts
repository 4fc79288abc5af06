/** By the bytes of UTF-8, as the warehouse sorts. */
export function compareUtf8(a: string, b: string): number {
  return Buffer.compare(Buffer.from(a), Buffer.from(b));
}
