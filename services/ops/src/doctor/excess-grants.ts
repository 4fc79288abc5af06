import type { Grant } from "@conversation-export/warehouse";

export type ExcessGrant = {
  readonly text: string;
  /** Reaches the database's tables, or can be passed on. */
  readonly grave: boolean;
};

const LINE = /^GRANT (.+) ON (.+?) TO .*?( WITH GRANT OPTION)?$/;

/** Parentheses hold columns of a privilege. */
const listOf = (privileges: string): string[] => privileges.split(/,\s*(?![^(]*\))/);

const withoutColumns = (privilege: string): string => privilege.replace(/\(.*\)$/, "");

const reaches = (place: string, database: string): boolean => {
  const [name = ""] = place.split(".");
  return name.endsWith("*") ? database.startsWith(name.slice(0, -1)) : name === database;
};

/** Newer servers show REMOTE as a source. */
const shown = ({ privileges, on }: Grant): Grant[] =>
  privileges.flatMap((privilege) =>
    privilege === "REMOTE"
      ? [
          { privileges: ["REMOTE"], on },
          { privileges: ["READ", "WRITE"], on: "REMOTE" },
        ]
      : [{ privileges: [privilege], on }],
  );

/** A wider place and the grant option are in excess. `lines`: of `SHOW GRANTS FINAL`. */
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

/** They reach no stored row. */
const OF_NO_TABLE: ReadonlySet<string> = new Set(["REMOTE", "CLUSTER", "CREATE TEMPORARY TABLE"]);

/** Such as for `ON CLUSTER`. */
export const rightsEverywhere = (needed: readonly Grant[]): string[] =>
  needed.flatMap(({ privileges, on }) =>
    on === "*.*" ? privileges.filter((one) => !OF_NO_TABLE.has(one)) : [],
  );
