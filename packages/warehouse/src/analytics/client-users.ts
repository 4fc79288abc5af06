import type { Session } from "../session/session.ts";
import { WarehouseError } from "../session/warehouse-error.ts";
import { CLIENT_USER } from "./left-out-sql.ts";

export type ClientUser = { readonly name: string; readonly settings: Readonly<Record<string, string>> };

export type ProfileElement = {
  readonly user: string | null;
  readonly profile: string | null;
  readonly inherits: string | null;
  readonly setting: string | null;
  readonly value: string | null;
};

const DEFAULT_PROFILE = "default";

/** A later line wins. */
export const settingsOfUser = (user: string, elements: readonly ProfileElement[]): Record<string, string> => {
  const settings: Record<string, string> = {};
  const follow = (own: readonly ProfileElement[], seen: readonly string[]): void => {
    for (const { inherits, setting, value } of own) {
      if (inherits !== null && !seen.includes(inherits)) followProfile(inherits, [...seen, inherits]);
      if (setting !== null && value !== null) settings[setting] = value;
    }
  };
  const followProfile = (name: string, seen: readonly string[]): void =>
    follow(
      elements.filter(({ profile }) => profile === name),
      seen,
    );
  followProfile(DEFAULT_PROFILE, [DEFAULT_PROFILE]);
  follow(
    elements.filter((one) => one.user === user),
    [],
  );
  return settings;
};

/** null: other users are not visible. Settings of roles are not read. */
export const readClientUsers = async (session: Session): Promise<ClientUser[] | null> => {
  try {
    const users = await session.rows<{ name: string }>(
      "inspect.client_users",
      `SELECT name FROM system.users WHERE startsWith(lower(name), '${CLIENT_USER}') ORDER BY name`,
    );
    if (users.length === 0) return [];
    const elements = await session.rows<ProfileElement>(
      "inspect.profiles",
      `SELECT user_name AS user, profile_name AS profile, inherit_profile AS inherits, setting_name AS setting, value
       FROM system.settings_profile_elements WHERE role_name IS NULL ORDER BY index`,
    );
    return users.map(({ name }) => ({ name, settings: settingsOfUser(name, elements) }));
  } catch (error) {
    if (error instanceof WarehouseError && error.causeName === "ACCESS_DENIED") return null;
    throw error;
  }
};
