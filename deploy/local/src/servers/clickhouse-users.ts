import { grantsOf, type Topology, WAREHOUSE_USERS } from "@conversation-export/warehouse";

/** The database that all users of `users.xml` may use. */
export const database = "conversation_export";

/** Rights that tests need besides. */
export type TestRights = {
  /** Each service may do its work in every database `conversation_export_…` too. */
  readonly otherDatabases?: boolean | undefined;
  /** Clients with a user `customer_…` for the views, who has the password of the analyst. */
  readonly customers?: readonly string[] | undefined;
};

/** Adds the users of customers, each like the analyst but for its name and profile. */
const withCustomers = (usersXml: string, clients: readonly string[]): string => {
  const [analyst = ""] = /<analyst>\s*<password[^]*?<\/analyst>/.exec(usersXml) ?? [];
  const users = clients.map((client) =>
    analyst.replace("<profile>analyst<", "<profile>customer<").replaceAll("analyst>", `customer_${client}>`),
  );
  return usersXml.replace("</users>", () => `${users.join("\n")}</users>`);
};

/** `users.xml` with the rights of the services and of analysts. */
export const withServiceGrants = (
  usersXml: string,
  topology: Topology,
  { otherDatabases = false, customers = [] }: TestRights = {},
): string => {
  const granted = WAREHOUSE_USERS.reduce((xml, user) => {
    const grants = grantsOf(user, database, topology);
    const everything = new Set(
      grants.filter(({ on }) => on.startsWith(database)).flatMap(({ privileges }) => privileges),
    );
    const others = otherDatabases ? [{ privileges: [...everything], on: `${database}_*.*` }] : [];
    const lines = [...grants, ...others].map(
      ({ privileges, on }) => `\n        <query>GRANT ${privileges.join(", ")} ON ${on}</query>`,
    );
    const block = new RegExp(`(CLICKHOUSE_${user.toUpperCase()}_PASSWORD[^]*?<grants>)[^]*?(\\n *</grants>)`);
    return xml.replace(block, (_, before: string, after: string) => `${before}${lines.join("")}${after}`);
  }, usersXml);
  return customers.length === 0 ? granted : withCustomers(granted, customers);
};
