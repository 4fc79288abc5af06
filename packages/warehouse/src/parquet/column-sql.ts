/** ClickHouse rejects integers beyond 64 bits and reprints numbers: these and free objects are cut out as text. */
import { type Column, type ColumnType, MAX_DEPTH } from "@conversation-export/domain";
import { sqlText } from "../session/sql-text.ts";

const SCALARS = {
  text: "String",
  number: "Float64",
  integer: "Int64",
  flag: "Bool",
  instant: "DateTime64(6, 'UTC')",
  json: "String",
} as const;

const sqlType = (type: ColumnType): string => {
  if (typeof type === "string") return `Nullable(${SCALARS[type]})`;
  return "list" in type ? `Array(${sqlType(type.list)})` : tupleType(type.members);
};

type Typed = Pick<Column, "name" | "type">;

const memberTypes = (columns: readonly Typed[]): string =>
  columns.map(({ name, type }) => `\`${name}\` ${sqlType(type)}`).join(", ");

const tupleType = (columns: readonly Column[]): string => `Tuple(${memberTypes(columns)})`;

const STRING = String.raw`"(?:[^"\\]|\\.)*"`;
/** Nested as deep as records may be. */
const objectPattern = (): string => {
  let pattern = "";
  for (let level = 0; level < MAX_DEPTH; level += 1)
    pattern = String.raw`\{(?:[^{}"]|${STRING}${pattern === "" ? "" : `|${pattern}`})*\}`;
  return pattern;
};

const CUT = {
  json: { pattern: `^(?:null|${objectPattern()})`, value: (text: string) => `nullIf(${text}, 'null')` },
  number: { pattern: "^[^,}]*", value: (text: string) => `toFloat64OrNull(${text})` },
  // 5.0 and 1e2 are integers too.
  integer: { pattern: "^[^,}]*", value: (text: string) => `toInt64(toFloat64OrNull(${text}))` },
} as const;
type CutType = keyof typeof CUT;

const isCut = (type: ColumnType): type is CutType => typeof type === "string" && type in CUT;

type Cut = { readonly name: string; readonly type: CutType };

const cutsOf = (columns: readonly Column[]): readonly Cut[] =>
  columns.flatMap(({ name, type }) => {
    if (isCut(type)) return [{ name, type }];
    if (typeof type === "object" && "list" in type) {
      const inItems = typeof type.list === "object" && "members" in type.list ? type.list.members : [];
      if (isCut(type.list) || cutsOf(inItems).length > 0)
        throw new TypeError(`nothing can be cut out of ${name}`);
    }
    return typeof type === "object" && "members" in type ? cutsOf(type.members) : [];
  });

const numbered = (name: string, count: number): readonly string[] =>
  Array.from({ length: count }, (_, index) => `${name}_${index}`);

/** A label's first occurrence is the field: strings escape quotes, earlier free objects are gone. */
const cutOut = (from: string, { name, type }: Cut, index: number): string => {
  const label = `,"${name}":`;
  const kept = [...numbered("part", index), ...numbered("value", index)]
    .map((column) => `${column}, `)
    .join("");
  return `WITH position(rest_${index}, ${sqlText(label)}) AS place, place + ${label.length - 1} AS before,
      if(place = 0, 'null', extract(substring(rest_${index}, before + 1), ${sqlText(CUT[type].pattern)})) AS found
    SELECT ${kept}found AS value_${index},
      if(place = 0, '', concat(substring(rest_${index}, 1, before), 'null')) AS part_${index},
      if(place = 0, rest_${index}, substring(rest_${index}, before + length(found) + 1)) AS rest_${index + 1}
    FROM (${from})`;
};

const valueOf = ({ name, type }: Column, place: string, cuts: readonly Cut[]): string => {
  if (isCut(type)) return CUT[type].value(`value_${cuts.findIndex((cut) => cut.name === name)}`);
  const own = `tupleElement(${place}, '${name}')`;
  if (typeof type === "string" || "list" in type || cutsOf(type.members).length === 0) return own;
  const members = type.members.map((member) => valueOf(member, own, cuts)).join(", ");
  return `CAST(tuple(${members}), ${sqlText(tupleType(type.members))})`;
};

/** Error for a text that is no record. */
export const UNREADABLE = "FUNCTION_THROW_IF_VALUE_IS_NON_ZERO";

const DELETION: readonly Typed[] = [
  { name: "deleted", type: "flag" },
  { name: "deleted_at", type: "instant" },
];

/** In order. `columns`: the id first. `records`: SELECT of `record`, public JSON. */
export const typedColumns = (columns: readonly Column[], records: string, withDeletions: boolean): string => {
  const [id, ...others] = columns;
  if (id === undefined) throw new TypeError("records have an id");
  const cuts = cutsOf(others);
  const parts = cuts.reduce(cutOut, `SELECT record AS rest_0 FROM (${records})`);
  const fields = `Tuple(\`${id.name}\` String, ${memberTypes([...others, ...DELETION])})`;
  const rest = [...numbered("part", cuts.length), `rest_${cuts.length}`].join(", ");
  const idOf = `tupleElement(fields, '${id.name}')`;
  const deletion = `, ifNull(tupleElement(fields, 'deleted'), false) AS deleted, tupleElement(fields, 'deleted_at') AS deleted_at`;
  return `SELECT if(throwIf(empty(${idOf}), 'a record cannot be read') = 0, ${idOf}, '') AS \`${id.name}\`,
      ${others.map((column) => `${valueOf(column, "fields", cuts)} AS \`${column.name}\``).join(", ")}${withDeletions ? deletion : ""}
    FROM (SELECT ${numbered("value", cuts.length).join(", ")}, JSONExtract(concat(${rest}), ${sqlText(fields)}) AS fields
      FROM (${parts}))`;
};
