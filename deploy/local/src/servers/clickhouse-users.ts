import { grantsOf, SERVICE_USERS, type Topology } from "@conversation-export/warehouse";

/** The database that all users of `users.xml` may use. */
export const database = "conversation_export";

/**
 * `users.xml` with the rights of the services.
 *
 * @param otherDatabases lets each service do its work in every database `conversation_export_…` too, for
 * tests
 */
export const withServiceGrants = (usersXml: string, topology: Topology, otherDatabases = false): string =>
  SERVICE_USERS.reduce((xml, user) => {
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
