import { VIEW_LIMITS } from "@conversation-export/warehouse";
import { applying } from "./finding.ts";

export const limitFaults = (settings: Readonly<Record<string, string>>): string[] => {
  const limits = Object.entries(VIEW_LIMITS).map(([name, { most }]) => ({
    name,
    value: Number(settings[name] ?? 0),
    most,
  }));
  // 0: no limit.
  const unbounded = limits.filter(({ value }) => value === 0);
  const high = limits.filter(({ value, most }) => value > most);
  return applying([
    unbounded.length > 0 && `has no limit of ${unbounded.map(({ name }) => name).join(", ")}`,
    high.length > 0 &&
      `may use more than one user should: ${high.map(({ name, value, most }) => `${name} ${value} (${most})`).join(", ")}`,
  ]);
};
