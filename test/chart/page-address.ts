/** Milliseconds; NaN for a missing bound. */
type Window = { readonly since: number; readonly to: number };

const windowsIn = (text: string): Window[] =>
  [...text.matchAll(/\/v2\/export\/conversations\?([^"\s]*)/g)].map(([, query]) => {
    const given = new URLSearchParams(query);
    const at = (name: string): number => Date.parse(given.get(name) ?? "");
    return { since: at("created_since"), to: at("created_to") };
  });

export const countAddresses = (text: string): { readonly all: number; readonly current: number } => {
  const windows = windowsIn(text);
  const now = Date.now();
  return { all: windows.length, current: windows.filter(({ since, to }) => since < now && now < to).length };
};
