import type { ChangedSetting } from "@conversation-export/warehouse";
import { applying, type Findings, findingsOf } from "./finding.ts";

const { warning, problem } = findingsOf("ClickHouse");

const listed = (settings: readonly ChangedSetting[]): string =>
  settings.map(({ name, value }) => `${name} = ${value}`).join(", ");

/** About settings sent with every statement. */
export const profileFindings = (name: string, changed: readonly ChangedSetting[]): Findings => {
  const [fixed, free] = [changed.filter(({ isFixed }) => isFixed), changed.filter(({ isFixed }) => !isFixed)];
  return applying([
    fixed.length > 0 &&
      problem(
        name,
        `its profile fixes ${listed(fixed)}, so ClickHouse refuses its statements`,
        "take them out of the profile or its constraints: they would cut or change answers",
      ),
    free.length > 0 &&
      warning(
        name,
        `its profile sets ${listed(free)}`,
        "take them out of the profile: the services send the defaults, but other programs of this user get other answers",
      ),
  ]);
};
