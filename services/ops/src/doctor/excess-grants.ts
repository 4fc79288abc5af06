import type { Grant } from "@conversation-export/warehouse";

/** A right that a user has and does not need. */
export type ExcessGrant = {
  readonly text: string;
  /** It reaches the tables of the database, or can be passed on. */
  readonly grave: boolean;
};

const LINE = /^GRANT (.+) ON (.+?) TO .*?( WITH GRANT OPTION)?$/;

/** Splits at commas outside of parentheses, which hold the columns of a privilege. */
const listOf = (privileges: string): string[] => privileges.split(/,\s*(?![^(]*\))/);

const withoutColumns = (privilege: string): string => privilege.replace(/\(.*\)$/, "");

/** Whether a place, such as `export*.*`, includes tables of the database. */
const reaches = (place: string, database: string): boolean => {
  const [name = ""] = place.split(".");
  return name.endsWith("*") ? database.startsWith(name.slice(0, -1)) : name === database;
};

/** REMOTE is shown as a source of newer servers. */
const shown = ({ privileges, on }: Grant): Grant[] =>
  privileges.flatMap((privilege) =>
    privilege === "REMOTE"
      ? [
          { privileges: ["REMOTE"], on },
          { privileges: ["READ", "WRITE"], on: "REMOTE" },
        ]
      : [{ privileges: [privilege], on }],
  );

/**
 * Compares what a user may do with what it needs. A right on a wider place than needed is in excess, and so
 * is one that the user could pass on.
 *
 * @param lines of `SHOW GRANTS FINAL`
 */
export const excessGrants = (
  lines: readonly string[],
  needed: readonly Grant[],
  database: string,
): ExcessGrant[] => {
  const allowed = new Set(
    needed.flatMap(shown).flatMap(({ privileges, on }) => privileges.map((one) => `${one} ON ${on}`)),
  );
  return lines.flatMap((line) => {
    const [, privileges, quoted = "", passedOn] = LINE.exec(line) ?? [];
    if (privileges === undefined) return [];
    const place = quoted.replaceAll("`", "");
    const excess = listOf(privileges).filter(
      (one) =>
        passedOn !== undefined ||
        ![one, withoutColumns(one)].some((privilege) => allowed.has(`${privilege} ON ${place}`)),
    );
    if (excess.length === 0) return [];
    const grave = passedOn !== undefined || reaches(place, database);
    return [{ text: `${excess.join(", ")} on ${place}${(passedOn ?? "").toLowerCase()}`, grave }];
  });
};

/** Rights on all places that reach no stored row. */
const OF_NO_TABLE: ReadonlySet<string> = new Set(["REMOTE", "CLUSTER", "CREATE TEMPORARY TABLE"]);

/** Rights on the tables of every database among those that a user needs, such as `ON CLUSTER` asks for. */
export const rightsEverywhere = (needed: readonly Grant[]): string[] =>
  needed.flatMap(({ privileges, on }) =>
    on === "*.*" ? privileges.filter((one) => !OF_NO_TABLE.has(one)) : [],
  );
