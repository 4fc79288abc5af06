/** Sums all series. */
export const readMetric = async (
  metricsUrl: string,
  name: string,
  labels: Readonly<Record<string, string>> = {},
): Promise<number | null> => {
  const text = await (await fetch(`${metricsUrl}/metrics`)).text();
  let sum: number | null = null;
  for (const line of text.split("\n")) {
    const match = /^(\w+)(?:\{(.*)\})? (\S+)$/.exec(line);
    if (match === null || match[1] !== name) continue;
    const given = match[2] ?? "";
    if (!Object.entries(labels).every(([label, value]) => given.includes(`${label}="${value}"`))) continue;
    sum = (sum ?? 0) + Number(match[3]);
  }
  return sum;
};
