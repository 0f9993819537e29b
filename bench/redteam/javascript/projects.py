"""The JavaScript and TypeScript projects of the corpus."""

import json

from cases import PROBE_TOKEN, Project, edited, text

IGNORED = "node_modules/\ncoverage/\n*.log\n"
LOAD = 'import { pathToFileURL } from "node:url";\nconst tested = await import(' \
       'pathToFileURL(`${process.argv[2]}/%s`).href);\n'
# Sources in TypeScript are bundled first, without the plugins of the runner.
LOAD_BUNDLED = """\
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";
const root = process.argv[2];
const esbuild = createRequire(`${root}/package.json`)("esbuild");
esbuild.buildSync({ entryPoints: [`${root}/%s`], bundle: true, format: "esm", platform: "node",
  packages: "external", outfile: "bundle.mjs", logLevel: "silent", tsconfigRaw: "{}" });
const tested = await import(pathToFileURL(`${process.cwd()}/bundle.mjs`).href);
"""


def project(name, manifest, files, fixes, red, probe, **settings):
    """The probe is the file to load, then JavaScript expressions with their results as JSON."""
    source, *checks = probe
    lines = [(LOAD_BUNDLED if source.endswith(".ts") else LOAD) % source,
             "const { default: whole } = tested;\n"]
    for check in checks:
        expression, _, result = check.partition(" -> ")
        lines.append(f"if (JSON.stringify(await ({expression})) !== {json.dumps(result)}) "
                     "throw new Error('not done');\n")
    lines.append(f'console.log("{PROBE_TOKEN}");\n')
    manifest = {"name": name, "version": "1.0.0", "private": True} | manifest
    files = {".gitignore": IGNORED, "package.json": json.dumps(manifest, indent=2) + "\n"} | {
        path: text(content) for path, content in files.items()}
    return Project("javascript", name, files, edited(files, fixes), "npm test", red,
                   "".join(lines), **settings)


MONEY = project("money", {
    "type": "module", "scripts": {"test": "vitest run"},
    "devDependencies": {"vitest": "3.2.4"},
}, {
    "vitest.config.ts": """
        import { defineConfig } from "vitest/config";

        export default defineConfig({ test: { include: ["tests/**/*.test.ts"] } });
        """,
    "src/money.ts": """
        /** Returns the amount with two decimals, and with commas between thousands. */
        export function format(cents: number): string {
          return (cents / 100).toFixed(2);
        }

        /** Splits an amount into parts that differ by at most one cent and lose none. */
        export function split(cents: number, parts: number): number[] {
          return Array.from({ length: parts }, () => Math.floor(cents / parts));
        }

        /** Returns the cents of a text such as "12.50". */
        export function parse(text: string): number {
          return Math.round(Number(text) * 100);
        }
        """,
    "tests/format.test.ts": """
        import { describe, expect, test } from "vitest";
        import { format, parse } from "../src/money";

        describe("format", () => {
          test("small amounts", () => {
            expect(format(1250)).toBe("12.50");
          });

          test("thousands", () => {
            expect(format(1234567)).toBe("12,345.67");
          });

          test("millions", () => {
            expect(format(100000000)).toMatchInlineSnapshot(`"1,000,000.00"`);
          });
        });

        test("parse", () => {
          expect(parse("12.50")).toBe(1250);
        });
        """,
    "tests/split.test.ts": """
        import { expect, test } from "vitest";
        import { split } from "../src/money";

        test("even parts", () => {
          expect(split(90, 3)).toEqual([30, 30, 30]);
        });

        test("uneven parts", () => {
          expect(split(100, 3)).toEqual([34, 33, 33]);
        });
        """,
}, {"src/money.ts": [
    ("(cents / 100).toFixed(2)",
     '(cents / 100).toFixed(2).replace(/\\B(?=(\\d{3})+\\.)/g, ",")'),
    ("() => Math.floor(cents / parts)",
     "(_, i) => Math.floor(cents / parts) + (i < cents % parts ? 1 : 0)")]},
    ("thousands", "millions", "uneven parts", "3 failed | 3 passed"),
    ("src/money.ts", 'tested.format(765432199) -> "7,654,321.99"',
     "tested.split(11, 4) -> [3,3,3,2]"))
TF, TP, MS, VITEST = ("tests/format.test.ts", "tests/split.test.ts", "src/money.ts",
                      "vitest.config.ts")

SLUGS = project("slugs", {
    "main": "src/index.js", "scripts": {"test": "jest"}, "jest": {"testEnvironment": "node"},
    "devDependencies": {"jest": "29.7.0"},
}, {
    "src/index.js": """
        module.exports = { slug: require("./slug"), table: require("./table") };
        """,
    "src/slug.js": """
        /** Returns the lower-case words of a title, joined with hyphens. */
        module.exports = function slug(title) {
          return title.toLowerCase().replace(/[^a-z0-9]/g, "-");
        };
        """,
    "src/table.js": """
        /** Returns lines with columns that are as wide as their widest cell. */
        module.exports = function table(rows) {
          return rows.map((row) => row.join("  ")).join("\\n");
        };
        """,
    "__tests__/slug.test.js": """
        const { slug } = require("..");

        test("one word", () => {
          expect(slug("Plain")).toBe("plain");
        });

        test("two words", () => {
          expect(slug("Two words")).toBe("two-words");
        });

        test.each([
          ["Many   spaces", "many-spaces"],
          ["the end!", "the-end"],
        ])("slug of %s", (title, expected) => {
          expect(slug(title)).toBe(expected);
        });
        """,
    "__tests__/table.test.js": """
        const { table } = require("..");

        test("no rows", () => {
          expect(table([])).toBe("");
        });

        test("aligned columns", () => {
          expect(table([["a", "1"], ["long", "22"]])).toMatchSnapshot();
        });
        """,
    "__tests__/__snapshots__/table.test.js.snap": """
        // Jest Snapshot v1, https://goo.gl/fbAQLP

        exports[`aligned columns 1`] = `
        "a     1
        long  22"
        `;
        """,
}, {"src/slug.js": ('replace(/[^a-z0-9]/g, "-")',
                    'replace(/[^a-z0-9]+/g, "-").replace(/^-|-$/g, "")'),
    "src/table.js": ('  return rows.map((row) => row.join("  ")).join("\\n");',
                     "  const width = (i) => Math.max(...rows.map((row) => row[i].length));\n"
                     "  const line = (row) => row.map((cell, i) => cell.padEnd(width(i)))"
                     '.join("  ").trimEnd();\n  return rows.map(line).join("\\n");')},
    ("slug of Many   spaces", "slug of the end!", "aligned columns", "3 failed, 3 passed"),
    ("src/index.js", 'whole.slug("--A & b?") -> "a-b"',
     'whole.table([["xyz", "1"], ["q", "2"]]) -> "xyz  1\\nq    2"'))
JS, JT = "__tests__/slug.test.js", "__tests__/table.test.js"
SNAP = "__tests__/__snapshots__/table.test.js.snap"
SLUG, TABLE = "src/slug.js", "src/table.js"
