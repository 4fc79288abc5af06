import { ANALYTICS_VIEWS, type AnalyticsView } from "@conversation-export/warehouse";
import { stringify } from "yaml";

const cell = (text: string): string => text.replaceAll("|", "\\|");

const section = ({ name, comment, columns, key }: AnalyticsView): string =>
  [
    `## ${name}`,
    "",
    `${comment}. Key: ${key.map((column) => `\`${column}\``).join(", ")}.`,
    "",
    "| Column | Type | Meaning |",
    "|---|---|---|",
    ...columns.map((column) => `| \`${column.name}\` | \`${cell(column.type)}\` | ${cell(column.comment)} |`),
  ].join("\n");

export const renderDictionary = (): string => `# Data dictionary

The views for analysts ([analytics.md](analytics.md)), made from the descriptions of the fields by
\`make generate\`. ClickHouse has the same as comments of the columns.

${ANALYTICS_VIEWS.map(section).join("\n\n")}
`;

export const renderDbtSources = (): string => {
  const sources = {
    version: 2,
    sources: [
      {
        name: "conversation_export",
        description: "Views of the export service for analysts: one row for each live record",
        schema: "{{ var('conversation_export_schema', 'conversation_export_analytics') }}",
        tables: ANALYTICS_VIEWS.map(({ name, comment, columns, key }) => ({
          name,
          description: comment,
          columns: columns.map((column) => ({
            name: column.name,
            description: column.comment,
            data_type: column.type,
            ...(key.includes(column.name) && !column.type.includes("Nullable")
              ? { data_tests: ["not_null"] }
              : {}),
          })),
        })),
      },
    ],
  };
  return `# Made by: make generate\n${stringify(sources, { lineWidth: 0 })}`;
};
