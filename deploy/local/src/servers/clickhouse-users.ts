import { grantsOf, type Topology, viewProfileXml, WAREHOUSE_USERS } from "@conversation-export/warehouse";

export const database = "conversation_export";

export type TestRights = {
  /** For databases `conversation_export_…`. */
  readonly otherDatabases?: boolean | undefined;
  /** With the analyst's password. */
  readonly clientUsers?: readonly string[] | undefined;
  readonly profiles?: Readonly<Record<string, Readonly<Record<string, string>>>> | undefined;
  /** With the analyst's password, and settings instead of its profile. */
  readonly analysts?: Readonly<Record<string, Readonly<Record<string, string>>>> | undefined;
};

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
          // Column privileges allow no pattern of databases.
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
