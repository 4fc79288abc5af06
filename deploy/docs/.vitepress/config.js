// The site of the Markdown pages. build.sh puts this folder into .cache/docs, and the pages beside it.
import { cpSync, existsSync, globSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";

const ROOT = join(import.meta.dirname, "../../..");
const PAGES = join(import.meta.dirname, "../pages");

/** The sidebar: the sections of docs/README.md with their links. */
const sidebar = readFileSync(join(PAGES, "docs/README.md"), "utf8")
  .split("\n## ")
  .slice(1)
  .map((section) => ({
    text: section.split("\n", 1)[0],
    items: [...section.matchAll(/\[([^\]]+)\]\(([^)#]+\.md)\)/g)].map(([, text, path]) => ({
      text: text.charAt(0).toUpperCase() + text.slice(1),
      link: `/${join("docs", path)}`,
    })),
  }));

/** The anchors of GitHub, which the links between pages name. */
const slugify = (heading) =>
  heading
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\s_-]/gu, "")
    .trim()
    .replaceAll(/\s/g, "-");

/** The README of the project is the first page, other files of docs are copied, and sources are not on the site. */
const mendTokens = (md) => {
  md.core.ruler.push("mend-tokens", ({ tokens, env }) => {
    let isSource = false;
    for (const token of tokens.flatMap(({ children }) => children ?? [])) {
      // Braces in code are no expressions of the generator.
      if (token.type === "code_inline") token.attrSet("v-pre", "");
      if (token.type === "link_close" && isSource) {
        token.tag = "span";
        isSource = false;
      }
      const href = token.type === "link_open" ? token.attrGet("href") : null;
      if (href === null || /^(\w+:|#)/.test(href)) continue;
      const [path, anchor] = href.split("#");
      const file = join(env.relativePath === "index.md" ? "." : dirname(env.relativePath), path);
      if (file === "README.md") token.attrSet("href", `/index.md${anchor ? `#${anchor}` : ""}`);
      else if (file.endsWith(".md")) continue;
      else if (existsSync(join(PAGES, file))) token.attrSet("target", "_self");
      else if (existsSync(join(ROOT, file))) {
        token.tag = "span";
        token.attrs = [];
        isSource = true;
      }
    }
  });
};

export default {
  title: "Conversation export",
  description: "Chatbot events from Kafka, merged in ClickHouse, served over an API",
  srcDir: "pages",
  outDir: join(ROOT, ".local/docs"),
  rewrites: { "README.md": "index.md" },
  markdown: { anchor: { slugify }, languageAlias: { promql: "sql" }, config: mendTokens },
  vite: { build: { chunkSizeWarningLimit: 2_000 } },
  themeConfig: {
    search: { provider: "local" },
    nav: [
      { text: "Quick start", link: "/docs/quick-start" },
      { text: "All pages", link: "/docs/README" },
    ],
    sidebar,
    outline: [2, 3],
  },
  buildEnd: ({ outDir }) => {
    for (const name of globSync("docs/{pictures,schemas,examples,dbt}/**/*.*", { cwd: PAGES }))
      cpSync(join(PAGES, name), join(outDir, name));
  },
};
