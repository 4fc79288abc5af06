import { grantsOf, type Topology, viewProfileXml, WAREHOUSE_USERS } from "@conversation-export/warehouse";

/** The database that all users of `users.xml` may use. */
export const database = "conversation_export";

/** Rights that only tests need. */
export type TestRights = {
  /** Each service may do its work in every database `conversation_export_…` too. */
  readonly otherDatabases?: boolean | undefined;
  /** Clients with a user `client_…` for the views, who has the password of the analyst. */
  readonly clientUsers?: readonly string[] | undefined;
  /** Settings that the profiles of `users.xml` also get. */
  readonly profiles?: Readonly<Record<string, Readonly<Record<string, string>>>> | undefined;
  /** Further analysts, who have the password of the first one, with the settings of each in place of its profile. */
  readonly analysts?: Readonly<Record<string, Readonly<Record<string, string>>>> | undefined;
};

/** Adds users who are like the analyst but for their names and profiles. */
const withAnalysts = (usersXml: string, profiles: ReadonlyMap<string, string>): string => {
  const [analyst = ""] = /<analyst>\s*<password[^]*?<\/analyst>/.exec(usersXml) ?? [];
  const users = [...profiles].map(([name, profile]) =>
    analyst.replace("<profile>analyst<", `<profile>${profile}<`).replaceAll("analyst>", `${name}>`),
  );
  return usersXml.replace("</users>", () => `${users.join("\n")}</users>`);
};

const asXml = (settings: Readonly<Record<string, string>>): string =>
  Object.entries(settings)
    .map(([setting, value]) => `<${setting}>${value}</${setting}>`)
    .join("");

const withSettings = (usersXml: string, profiles: NonNullable<TestRights["profiles"]>): string =>
  Object.entries(profiles).reduce(
    (xml, [name, settings]) =>
      xml.replace(new RegExp(`<profiles>[^]*?<${name}>`), (begin) => begin + asXml(settings)),
    usersXml,
  );

const withProfiles = (usersXml: string, profiles: NonNullable<TestRights["analysts"]>): string => {
  const written = Object.entries(profiles).map(([name, settings]) => `<${name}>${asXml(settings)}</${name}>`);
  return usersXml.replace("</profiles>", () => `${written.join("\n")}</profiles>`);
};

const withViewProfiles = (usersXml: string): string =>
  (["analyst", "client"] as const).reduce(
    (xml, reader) =>
      xml.replace(new RegExp(`<${reader}>\\s*<readonly>[^]*?</${reader}>`), () => viewProfileXml(reader)),
    usersXml,
  );

/** `users.xml` with the rights of the services and of analysts, and the profiles of those who read the views. */
export const withServiceGrants = (
  usersXml: string,
  topology: Topology,
  { otherDatabases = false, clientUsers = [], profiles = {}, analysts = {} }: TestRights = {},
): string => {
  const granted = WAREHOUSE_USERS.reduce(
    (xml, user) => {
      const grants = grantsOf(user, database, topology);
      const everything = new Set(
        grants
          .filter(({ on }) => on.startsWith(database))
          .flatMap(({ privileges }) => privileges)
          // No right on a column can be given in many databases at once.
          .map((privilege) => privilege.replace(/\(.*\)$/, "")),
      );
      const others = otherDatabases ? [{ privileges: [...everything], on: `${database}_*.*` }] : [];
      const lines = [...grants, ...others].map(
        ({ privileges, on }) => `\n        <query>GRANT ${privileges.join(", ")} ON ${on}</query>`,
      );
      const block = new RegExp(
        `(CLICKHOUSE_${user.toUpperCase()}_PASSWORD[^]*?<grants>)[^]*?(\\n *</grants>)`,
      );
      return xml.replace(block, (_, before: string, after: string) => `${before}${lines.join("")}${after}`);
    },
    withViewProfiles(withSettings(usersXml, profiles)),
  );
  const added = new Map([
    ...clientUsers.map((client) => [`client_${client}`, "client"] as const),
    ...Object.keys(analysts).map((name) => [name, name] as const),
  ]);
  return added.size === 0 ? granted : withAnalysts(withProfiles(granted, analysts), added);
};
