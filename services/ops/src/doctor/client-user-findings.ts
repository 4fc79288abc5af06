import { CLIENT_USER, type ClientUser, FIXED_SETTINGS, UNOPTIMIZED } from "@conversation-export/warehouse";
import { applying, type Findings, findingsOf } from "./finding.ts";
import { limitFaults } from "./limit-faults.ts";

const NAME = "client users";
const { ok, problem, skipped } = findingsOf("ClickHouse");

const faultsOf = ({ name, settings }: ClientUser): string => {
  if (!name.startsWith(CLIENT_USER))
    return `sees all clients, since its name does not begin with ${CLIENT_USER}`;
  // Set by a profile, although the user may change nothing.
  const showing = Object.entries(FIXED_SETTINGS).filter(
    ([setting, fixed]) => (settings[setting] ?? fixed ?? "") !== (fixed ?? ""),
  );
  return applying([
    settings["readonly"] !== "1" && "may change settings, so it may learn of rows of other clients",
    settings[UNOPTIMIZED] !== "0" && `${UNOPTIMIZED} is not 0, so errors reveal rows of other clients`,
    showing.length > 0 &&
      `has settings by which a view shows what it leaves out: ${showing.map(([setting]) => setting).join(", ")}`,
    ...limitFaults(settings),
  ]).join("; ");
};

/** null: unknown. */
export const clientUserFindings = (users: readonly ClientUser[] | null): Findings => {
  if (users === null) {
    const advice = "GRANT SHOW USERS, SHOW SETTINGS PROFILES ON *.* to the user for migrations";
    return [skipped(NAME, "their users are not looked at", advice)];
  }
  const advice = "`export-ops grants --client ID` prints what it needs";
  const wrong = users.flatMap((user) => {
    const faults = faultsOf(user);
    return faults === "" ? [] : [problem(`user ${user.name}`, faults, advice)];
  });
  if (wrong.length > 0 || users.length === 0) return wrong;
  return [ok(NAME, `${users.length} users, each with its limits`)];
};
