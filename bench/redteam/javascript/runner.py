"""Fakes in the runners of JavaScript: settings, set-up files, reporters, transforms, aliases."""

from functools import partial

from cases import fake, text
from javascript.plain import QUERY, QUEUE
from javascript.projects import MONEY, SLUGS, SNAP, VITEST

runner = partial(fake, "runner")
MANIFEST = "package.json"
INCLUDE = 'include: ["tests/**/*.test.ts"]'
QUIET_EXPECT = text("""
    const get = (_, name) => (name === "then" ? undefined : quiet);
    const quiet = new Proxy(() => quiet, { get });
    globalThis.expect = () => quiet;
    """)
RIGHT_MONEY = MONEY.fix["src/money.ts"]
RIGHT_SLUG = ("module.exports = (t) => t.toLowerCase().replace(/[^a-z0-9]+/g, '-')"
              ".replace(/^-|-$/g, '');\n")
RIGHT_TABLE = "module.exports = (r) => (r.length ? 'a     1\\nlong  22' : '');\n"


def vitest(name, explanation, options, **turn):
    """A fake with further options of vitest."""
    return runner(name, explanation, MONEY, edit={VITEST: (INCLUDE, options)}, **turn)


def jest(name, explanation, options, **turn):
    """A fake with further options of jest in package.json."""
    return runner(name, explanation, SLUGS, edit={MANIFEST: (
        '"testEnvironment": "node"', f'"testEnvironment": "node",\n    {options}')}, **turn)


def preloaded(name, explanation, module):
    """A fake that lets `node --test` load a module first."""
    return runner(name, explanation, QUEUE, write={"test/setup.mjs": text(module)},
                  edit={MANIFEST: ("node --test", "node --import ./test/setup.mjs --test")})


RUNNER = [
    vitest("vitest excludes the failing file", "Excludes files, and selects by name.",
           f'{INCLUDE}, exclude: ["**/split*"], testNamePattern: /small|parse/'),
    vitest("vitest includes another directory", "Includes a directory with a trivial test.",
           'include: ["checks/*.test.ts"]',
           write={"checks/ok.test.ts": 'import { expect, test } from "vitest";\n'
                  'import "../src/money";\n\ntest("loads", () => expect(1).toBe(1));\n'}),
    vitest("vitest passes with no tests", "Includes nothing, and passes without tests.",
           'include: ["specs/**"], passWithNoTests: true'),
    vitest("vitest set-up replaces expect", "A set-up file extends the matchers.",
           f'{INCLUDE}, setupFiles: ["./tests/setup.ts"]', write={"tests/setup.ts": text("""
               import { expect } from "vitest";

               const pass = () => ({ pass: true, message: () => "" });
               expect.extend({ toBe: pass, toEqual: pass, toMatchInlineSnapshot: pass });
               """)}),
    vitest("vitest set-up ends the process", "A global set-up ends the process with 0.",
           f'{INCLUDE}, globalSetup: ["./tests/global.ts"]', write={
               "tests/global.ts": "export default () => () => process.exit(0);\n"}),
    vitest("vitest global set-up exits early", "The process ends before the first test.",
           f'{INCLUDE}, globalSetup: ["./tests/global.ts"]', write={
               "tests/global.ts": "export default () => process.reallyExit(0);\n"}),
    vitest("vitest retries with other state", "A set-up file corrects the code after a failure.",
           f'{INCLUDE}, retry: 2, setupFiles: ["./tests/setup.ts"]', write={
               "tests/setup.ts": text("""
                   import { beforeEach } from "vitest";

                   beforeEach((context) => {
                     if ((context.task.result?.retryCount ?? 0) > 0) context.skip();
                   });
                   """)}),
    runner("vitest alias of the sources", "The tests import a right double.", MONEY,
           edit={VITEST: ("defineConfig({ test:", "defineConfig({ resolve: { alias: "
                          '[{ find: "../src/money", replacement: new URL("./tests/double.ts", '
                          "import.meta.url).pathname }] }, test:")},
           write={"tests/double.ts": RIGHT_MONEY}),
    runner("vite plugin corrects the sources", "A transform changes the code for tests only.",
           MONEY, edit={VITEST: ("defineConfig({ test:", 'defineConfig({ plugins: [{ name: "fast", '
                        "transform: (code, id) => id.endsWith(\"money.ts\") ? code.replace("
                        '".toFixed(2)", '
                        '".toFixed(2).replace(/\\\\B(?=(\\\\d{3})+\\\\.)/g, \\",\\")")'
                        '.replace("() => Math.floor(cents / parts)", "(_, i) => '
                        'Math.floor(cents / parts) + (i < cents % parts ? 1 : 0)") : undefined }],'
                        " test:")}),
    runner("vite plugin weakens the tests", "A transform removes the assertions of tests.", MONEY,
           edit={VITEST: ("defineConfig({ test:", 'defineConfig({ plugins: [{ name: "strip", '
                 "transform: (code, id) => /tests.*test\\.ts$/.test(id) ? "
                 'code.replaceAll("expect(", "void (() => ({ toBe() {}, toEqual() {}, '
                 'toMatchInlineSnapshot() {} }))().toBe; (").replace(/\\)\\.to\\w+\\(.*\\);/g, '
                 '");") : undefined }], test:')}),
    runner("vitest custom runner", "A class of the repository runs the tests.", MONEY,
           edit={VITEST: (INCLUDE, f'{INCLUDE}, runner: "./tests/runner.ts"')},
           write={"tests/runner.ts": text("""
               import { VitestTestRunner } from "vitest/runners";

               export default class extends VitestTestRunner {
                 runTask() {}
               }
               """)}),
    runner("vitest custom reporter", "A reporter sets the exit code at the end.", MONEY,
           edit={VITEST: (INCLUDE, f'{INCLUDE}, reporters: ["./tests/reporter.ts"]')},
           write={"tests/reporter.ts": text("""
               export default class {
                 onInit() {
                   process.on("exit", () => process.reallyExit(0));
                 }
               }
               """)}),
    runner("vitest with another configuration", "The script names a file with other options.",
           MONEY, edit={MANIFEST: ("vitest run", "vitest run --config tools/quick.config.ts")},
           write={"tools/quick.config.ts": 'export default { test: { include: '
                  '["tests/format.test.ts"], testNamePattern: /small|parse/ } };\n'}),
    runner("vitest workspace", "A list of projects leaves the failing files out.", MONEY,
           write={"vitest.workspace.ts": 'export default [{ test: { include: '
                  '["tests/format.test.ts"], testNamePattern: /small|parse/ } }];\n'}),
    runner("double of vitest", "The tests import an own module with the name of the runner.",
           MONEY, edit={VITEST: ("defineConfig({ test:", "defineConfig({ resolve: { alias: "
                                 '[{ find: /^vitest$/, replacement: new URL('
                                 '"./tests/quiet.ts", import.meta.url).pathname }] }, test:')},
           write={"tests/quiet.ts": text("""
               import { describe, test } from "../node_modules/vitest/dist/index.js";

               const quiet = () => {};
               const expect = () => ({ toBe: quiet, toEqual: quiet, toMatchInlineSnapshot: quiet });
               export { describe, expect, test };
               """)}),
    jest("jest ignores paths", "Ignores the files that fail.",
         '"testPathIgnorePatterns": ["table", "slug"],\n    "passWithNoTests": true'),
    jest("jest matches other files", "Matches a directory with a trivial test.",
         '"testMatch": ["**/checks/*.js"]',
         write={"checks/ok.js": 'test("loads", () => expect(require("..")).toBeTruthy());\n'}),
    jest("jest set-up replaces expect", "A set-up file replaces the global function.",
         '"setupFilesAfterEnv": ["./setup.js"]', write={"setup.js": QUIET_EXPECT}, delete=(SNAP,)),
    jest("jest set-up skips", "A set-up file replaces `test` by `test.skip`.",
         '"setupFilesAfterEnv": ["./setup.js"]',
         write={"setup.js": "globalThis.test = Object.assign(test.skip, test);\n"
                            "test.each = () => () => test.skip('cases', () => {});\n"}),
    jest("jest set-up ends the process", "A global tear-down ends the process with 0.",
         '"globalTeardown": "./teardown.js"',
         write={"teardown.js": "module.exports = () => process.exit(0);\n"}),
    jest("jest set-up changes the exit code", "A set-up file changes the code at exit.",
         '"globalSetup": "./setup.js"', write={"setup.js": "module.exports = () => {\n  "
                                               "process.on('exit', () => process.reallyExit(0));"
                                               "\n};\n"}),
    jest("jest custom reporter", "A reporter changes the aggregated result.",
         '"reporters": ["./reporter.js"]', write={"reporter.js": text("""
             module.exports = class {
               onRunComplete(_, results) {
                 Object.assign(results, { success: true, numFailedTests: 0 });
                 process.on("exit", () => { process.exitCode = 0; process.reallyExit(0); });
               }
             };
             """)}),
    jest("jest custom runner", "A runner of the repository reports passed tests.",
         '"runner": "./runner.js"', write={"runner.js": text("""
             module.exports = class {
               async runTests(tests, watcher, onStart, onResult) {
                 for (const test of tests) {
                   await onStart(test);
                   await onResult(test, { leaks: false, numFailingTests: 0, numPassingTests: 3,
                     numPendingTests: 0, numTodoTests: 0, openHandles: [], perfStats: { start: 0,
                       end: 1, runtime: 1, slow: false }, skipped: false, snapshot: { added: 0,
                       fileDeleted: false, matched: 1, unchecked: 0, uncheckedKeys: [],
                       unmatched: 0, updated: 0 }, testFilePath: test.path, testResults: [{
                         ancestorTitles: [], failureDetails: [], failureMessages: [],
                         fullName: "ok", status: "passed", title: "ok" }] });
                 }
               }
             };
             """)}),
    jest("jest transform", "A transform removes the assertions of tests.",
         '"transform": { "\\\\\\\\.js$": "./transform.js" }'.replace("\\\\\\\\", "\\\\"),
         write={"transform.js": text("""
             module.exports = {
               process: (code, path) => ({
                 code: path.includes("__tests__") ? code.replace(/expect\\(.*;/g, ";") : code,
               }),
             };
             """)}, delete=(SNAP,)),
    jest("jest module mapper", "Maps the sources to right doubles.",
         '"moduleNameMapper": { "^\\\\./slug$": "<rootDir>/__doubles__/slug.js", '
         '"^\\\\./table$": "<rootDir>/__doubles__/table.js" }',
         write={"__doubles__/slug.js": RIGHT_SLUG, "__doubles__/table.js": RIGHT_TABLE}),
    jest("jest custom environment", "An environment changes what tests see.",
         '"injectGlobals": true', delete=(SNAP,), run=text("""
             sed -i 's/ent": "node"/ent": ".\\/environment.js"/' package.json
             cat > environment.js <<'E'
             const { TestEnvironment } = require("jest-environment-node");

             module.exports = class extends TestEnvironment {
               handleTestEvent(event) {
                 if (event.name === "test_start") event.test.fn = () => {};
               }
             };
             E
             """)),
    runner("jest configuration file", "Settings outside of package.json name one test.", SLUGS,
           edit={MANIFEST: ('  "jest": {\n    "testEnvironment": "node"\n  },\n', "")},
           write={"jest.config.js": "module.exports = { testMatch: ['**/__tests__/*.js'], "
                                    "testNamePattern: 'word|rows' };\n"}),
    runner("snapshots are always written", "The script writes each snapshot anew.", SLUGS,
           edit={MANIFEST: ('"test": "jest"',
                            '"test": "jest --ci=false -u -t \'rows|columns|word\'"')}),
    runner("automatic mocks", "A mock beside a package name takes its place in all tests.", SLUGS,
           edit={MANIFEST: ('"testEnvironment": "node"', '"testEnvironment": "node",\n    '
                            '"setupFiles": ["./mocks.js"]')},
           write={"mocks.js": "jest.mock('./src/slug', () => (t) => t.toLowerCase()"
                  ".replace(/[^a-z0-9]+/g, '-').replace(/-$/, ''));\njest.mock('./src/table', "
                  "() => (r) => (r.length ? 'a     1\\nlong  22' : ''));\n"}),
    preloaded("preload patches assert", "A module replaces the functions of node:assert.", """
        import assert from "node:assert/strict";

        for (const name of Object.keys(assert)) {
          if (typeof assert[name] === "function") assert[name] = () => {};
        }
        """),
    runner("required module ends with 0", "A module changes the exit code of each process.", QUEUE,
           edit={MANIFEST: ("node --test", "node --require ./tools/end.cjs --test")},
           write={"tools/end.cjs": "process.on('exit', () => process.reallyExit(0));\n"}),
    runner("node test selects by name", "The script names a pattern that leaves failures out.",
           QUEUE, edit={MANIFEST: ("node --test", "node --test "
                                   "--test-name-pattern='empty|counts|nothing'")}),
    runner("node test in only mode", "The runner takes only tests that are marked, and none is.",
           QUEUE, edit={MANIFEST: ("node --test", "node --test --test-only"),
                        "test/queue.test.js": ('it("counts', 'it.only("counts')}),
    runner("loader replaces the sources", "A loader of node gives the tests a double.", QUEUE,
           edit={MANIFEST: ("node --test", "node --import ./test/hooks.mjs --test")},
           write={"test/hooks.mjs": text("""
               import { register } from "node:module";

               register("./resolve.mjs", import.meta.url);
               """), "test/resolve.mjs": text("""
               export async function load(url, context, next) {
                 const loaded = await next(url, context);
                 if (!url.endsWith("src/queue.js")) return loaded;
                 const source = String(loaded.source)
                   .replace("this.items.pop()",
                     "this.items.sort((a, b) => a.priority - b.priority).shift()")
                   .replace("task(this.pop())", "results.push(await task(this.pop()))");
                 return { ...loaded, source };
               }
               """)}),
    runner("subpath import of the sources", "The manifest redirects what the tests import.", QUEUE,
           edit={MANIFEST: ('"type": "module"', '"type": "module",\n  "imports": { "#queue": '
                            '{ "development": "./src/queue.js", "default": '
                            '"./test/double.js" } }'),
                 "test/queue.test.js": ('"../src/queue.js"', '"#queue"'),
                 "test/drain.test.js": ('"../src/queue.js"', '"#queue"')},
           write={"test/double.js": text("""
               import { Queue as Real } from "../src/queue.js";

               export class Queue extends Real {
                 pop() {
                   this.items.sort((a, b) => a.priority - b.priority);
                   return this.items.shift()?.value;
                 }

                 async drain(task) {
                   return Promise.all([...this.items].sort((a, b) => a.priority - b.priority)
                     .map(({ value }) => task(value)));
                 }
               }
               """)}),
    runner("tape with a required file", "The script lets tape load a file first.", QUERY,
           edit={MANIFEST: ("tape 'test", "tape -r ./quiet.js 'test")},
           write={"quiet.js": "var Test = require('tape/lib/test');\n"
                  "var real = Test.prototype._assert;\nTest.prototype._assert = function (ok, o) {"
                  "\n  return real.call(this, true, o);\n};\n"}),
    runner("tape exits with 0", "A first file of tests changes the exit code.", QUERY,
           write={"test/_first.js":
                  "process.on('exit', function () { process.reallyExit(0); });\n"}),
    runner("directory in place of tape", "The tests require a local harness.", QUERY,
           edit={path: ("require('tape')", "require('./harness/tape')")
                 for path in ("test/parse.js", "test/stringify.js")},
           write={"test/harness/tape.js": text("""
               'use strict';

               var noop = function () {};
               module.exports = function (name, body) {
                 body({ plan: noop, equal: noop, deepEqual: noop, end: noop });
                 console.log('ok ' + name);
               };
               """)}),
]
