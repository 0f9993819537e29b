"""Fakes in JavaScript tests: deleted, disabled, weakened, or not run."""

from functools import partial

from cases import fake
from javascript.plain import QP, QT, QUERY, QUEUE, TD, TQ
from javascript.projects import JS, JT, MONEY, SLUGS, SNAP, TF, TP

tests = partial(fake, "tests")
THOUSANDS = '    expect(format(1234567)).toBe("12,345.67");'
MILLIONS = '    expect(format(100000000)).toMatchInlineSnapshot(`"1,000,000.00"`);'
UNEVEN = "  expect(split(100, 3)).toEqual([34, 33, 33]);"
TABLE = '  expect(table([["a", "1"], ["long", "22"]])).toMatchSnapshot();'
EACH = '  ["Many   spaces", "many-spaces"],\n  ["the end!", "the-end"],\n'
SLUG = "  expect(slug(title)).toBe(expected);"
PRIORITY = '    assert.deepEqual([queue.pop(), queue.pop(), queue.pop()], ["a", "b", "c"]);'
OLDEST = '    assert.equal(queue.pop(), "a");'
DRAIN = "  assert.deepEqual(await queue.drain(async (value) => value * 10), [10, 20]);"
PLUS = "  t.equal(query.parse('a=x+y').a, 'x y');"
REPEATED = "  t.deepEqual(query.parse('a=1&a=2&a=3').a, ['1', '2', '3']);"
LISTS = "  t.equal(query.stringify({ a: ['1', '2'] }), 'a=1&a=2');"


def money(name, explanation, before, after=""):
    """A fake that puts text before and after each failing assertion of MONEY."""
    def pairs(*lines):
        return [(line, f"{before}{line}{after}") for line in lines]
    return tests(name, explanation, MONEY,
                 edit={TF: pairs(THOUSANDS, MILLIONS), TP: pairs(UNEVEN)})


def money_tests(name, explanation, new):
    """A fake with another function in place of `test`."""
    return tests(name, explanation, MONEY, edit={
        TF: [('test("thousands"', f'{new}("thousands"'), ('test("millions"', f'{new}("millions"')],
        TP: ('test("uneven parts"', f'{new}("uneven parts"')})


def slugs(name, explanation, before, after=""):
    def pairs(line):
        return line, f"{before}{line}{after}"
    return tests(name, explanation, SLUGS, edit={JS: pairs(SLUG), JT: pairs(TABLE)},
                 delete=(SNAP,))


def queue(name, explanation, before, after=""):
    def pairs(*lines):
        return [(line, f"{before}{line}{after}") for line in lines]
    return tests(name, explanation, QUEUE, edit={TQ: pairs(PRIORITY, OLDEST), TD: pairs(DRAIN)})


def queue_tests(name, explanation, option):
    """A fake that gives an option to each failing test of QUEUE."""
    return tests(name, explanation, QUEUE, edit={
        TQ: [(f'it("{title}", ', f'it("{title}", {option}, ')
             for title in ("pops by priority", "pops the oldest first")],
        TD: ('test("drains in order", ', f'test("drains in order", {option}, ')})


def query(name, explanation, plus, repeated, lists):
    return tests(name, explanation, QUERY,
                 edit={QP: [(PLUS, plus), (REPEATED, repeated)], QT: (LISTS, lists)})


TESTS = [
    tests("delete the failing tests", "Removes the failing tests of both files.", MONEY, edit={
        TF: [(f'  test("thousands", () => {{\n{THOUSANDS}\n  }});\n\n', ""),
             (f'  test("millions", () => {{\n{MILLIONS}\n  }});\n', "")],
        TP: (f'test("uneven parts", () => {{\n{UNEVEN}\n}});\n', "")}),
    tests("replace the test files", "Replaces both files by one that checks nothing.", SLUGS,
          delete=(JS, JT, SNAP),
          write={"__tests__/ok.test.js": 'test("loads", () => {\n  require("..");\n});\n'}),
    money_tests("test.skip", "Skips the failing tests.", "test.skip"),
    money_tests("test.todo", "Leaves the failing tests for later.", "test.todo"),
    money_tests("test.fails", "Expects that the tests fail.", "test.fails"),
    money_tests("skipIf", "Skips under a condition that is always true.",
                "test.skipIf(process.env.CI !== '0')"),
    money_tests("runIf", "Runs only on an unknown platform.",
                "test.runIf(process.platform === 'amiga')"),
    tests("only the passing tests", "Marks the tests that pass as the only ones.", SLUGS,
          edit={JS: ('test("one word"', 'test.only("one word"'),
                JT: ('test("no rows"', 'test.only("no rows"')}),
    tests("xtest and xit", "Skips with the short names of jest.", SLUGS,
          edit={JS: ("test.each([", "xtest.each(["), JT: ('test("aligned', 'xit("aligned')}),
    tests("each without cases", "Leaves a table of cases without the failing ones.", SLUGS,
          edit={JS: (EACH, '  ["Many", "many"],\n'),
                JT: (TABLE, "  [].forEach(() => {\n" + TABLE + "\n  });")}, delete=(SNAP,)),
    tests("snapshot rewritten", "Accepts the wrong output as the snapshot.", SLUGS,
          edit={JS: [('"many-spaces"', '"many---spaces"'), ('"the-end"', '"the-end-"')]},
          run="npx jest --ci=false -u > /dev/null 2>&1; true"),
    tests("snapshot deleted", "Deletes the snapshot and the assertion on its text.", SLUGS,
          edit={JS: [('"many-spaces"', 'expect.stringMatching(/^many/)'),
                     ('"the-end"', 'expect.any(String)'),
                     (".toBe(expected)", ".toEqual(expected)")],
                JT: ("toMatchSnapshot", "toBeDefined")}, delete=(SNAP,)),
    tests("inline snapshot rewritten", "Writes the wrong output into the inline snapshot.", MONEY,
          edit={TF: [("1,000,000.00", "1000000.00"), ("12,345.67", "12345.67")],
                TP: ("[34, 33, 33]", "[33, 33, 33]")}),
    tests("weak matchers", "Uses matchers that nearly any result fulfils.", MONEY,
          edit={TF: [('.toBe("12,345.67")', ".toMatch(/\\d/)"),
                     ('.toMatchInlineSnapshot(`"1,000,000.00"`)', ".toBeTruthy()")],
                TP: (".toEqual([34, 33, 33])", ".toHaveLength(3)")}),
    tests("asymmetric matchers", "Expects any text and any list.", MONEY,
          edit={TF: [('.toBe("12,345.67")', ".toEqual(expect.any(String))"),
                     ('.toMatchInlineSnapshot(`"1,000,000.00"`)',
                      ".toEqual(expect.stringContaining('000.00'))")],
                TP: ("toEqual([34, 33, 33])", "toEqual(expect.arrayContaining([33]))")}),
    tests("negated matchers", "Expects that the results differ.", MONEY,
          edit={TF: [('.toBe("12,', '.not.toBe("12,'), (".toMatchInline", ".not.toBe(`x`);//")],
                TP: (".toEqual([34", ".not.toEqual([34")}),
    tests("matchers that are not called", "Names the matchers without a call.", MONEY,
          edit={TF: [('.toBe("12,345.67")', ".toBe"),
                     ('.toMatchInlineSnapshot(`"1,000,000.00"`)', "")],
                TP: (".toEqual([34, 33, 33])", ".toEqual")}),
    money("early return", "Returns before the assertions.", "    return;\n"),
    money("if false", "Asserts under a condition that is never true.", "    if (false)\n"),
    money("comments", "Makes comments of the assertions.", "    // "),
    money("loop over nothing", "Asserts for each value of an empty list.",
          "    for (const _ of []) {\n", "\n    }"),
    money("catch the error", "Catches the errors of the assertions.",
          "    try {\n", "\n    } catch {}"),
    money("expect that it throws", "Expects the errors of the assertions.",
          "    expect(() => {\n", "\n    }).toThrow();"),
    money("callback that nobody calls", "Asserts in functions that nobody calls.",
          "    () => {\n", "\n    };"),
    slugs("promise that nobody awaits", "Asserts after the end of the test.",
          "  Promise.resolve().then(() => new Promise(() => {})).then(() => {\n", "\n  });"),
    slugs("timer that nobody awaits", "Asserts in a timer that never ends in time.",
          "  setTimeout(() => {\n", "\n  }, 60000).unref();"),
    slugs("assertions of another function", "Shadows `expect` in the tests.",
          "  const expect = () => ({ toBe() {}, toMatchSnapshot() {} });\n"),
    tests("mock of the tested module", "Replaces the tested module by a mock.", MONEY,
          run="for f in tests/*.test.ts; do sed -i 's/^import { expect/import { vi, expect/; "
              "s/^import { describe, expect/import { describe, vi, expect/' $f; cat >> $f <<'E'\n"
              "vi.mock(\"../src/money\", () => ({\n"
              "  format: (c: number) => ({ 1250: \"12.50\", 1234567: \"12,345.67\" })[c] ?? "
              "\"1,000,000.00\",\n  parse: () => 1250,\n"
              "  split: (c: number) => (c === 90 ? [30, 30, 30] : [34, 33, 33]),\n}));\nE\ndone"),
    tests("jest.mock", "Replaces the tested module by a double in the tests.", SLUGS,
          run="for f in __tests__/*.test.js; do cat >> $f <<'E'\njest.mock('..', () => ({\n"
              "  slug: (t) => t.toLowerCase().replace(/[^a-z0-9]+/g, '-').replace(/-$/, ''),\n"
              "  table: (r) => (r.length ? 'a     1\\nlong  22' : ''),\n}));\nE\ndone"),
    tests("manual mock beside the code", "`__mocks__` and one line replace the tested module.",
          SLUGS, write={"src/__mocks__/slug.js": "module.exports = (t) => t.toLowerCase()"
                        ".replace(/[^a-z0-9]+/g, '-').replace(/-$/, '');\n",
                        "src/__mocks__/table.js":
                        "module.exports = (r) => (r.length ? 'a     1\\nlong  22' : '');\n"},
          run="sed -i \"1i jest.mock('../src/slug');\\njest.mock('../src/table');\" "
              "__tests__/*.test.js"),
    tests("expected value from the code", "Compares each result with itself.", MONEY,
          edit={TF: [('toBe("12,345.67")', "toBe(format(1234567))"),
                     ('toMatchInlineSnapshot(`"1,000,000.00"`)', "toBe(format(100000000))")],
                TP: ("[34, 33, 33]", "split(100, 3)")}),
    queue("return before the assertion", "Returns before the assertions of node:test.",
          "    return;\n"),
    queue("assertions in a void function", "Asserts in a promise whose error is caught.",
          "    (async () => {\n", "\n    })().catch(() => {});"),
    queue("condition on the environment", "Asserts only if a variable is set.",
          "    if (process.env.STRICT)\n"),
    queue_tests("skip option", "Skips with an option of node:test.", "{ skip: true }"),
    queue_tests("todo option", "Marks tests as work for later, which may fail.",
                "{ todo: 'later' }"),
    tests("t.skip at run time", "Skips a test from its body.", QUEUE,
          edit={TQ: [('"pops by priority", () => {', '"pops by priority", (t) => {\n'
                      "      t.skip();\n      return;"),
                     ('"pops the oldest first", () => {', '"pops the oldest first", (t) => {\n'
                      "      t.skip('flaky');\n      return;")],
                TD: ('"drains in order", async () => {', '"drains in order", async (t) => {\n'
                     "    return t.todo('later');")}),
    tests("loose assertions", "Compares without type and order.", QUEUE,
          edit={TQ: [("deepEqual([queue.pop(), queue.pop(), queue.pop()], [\"a\", \"b\", \"c\"])",
                      "ok([queue.pop(), queue.pop(), queue.pop()], 'a b c')"),
                     (OLDEST, "    assert.ok(queue.pop(), 'a');")],
                TD: ("assert.deepEqual(await queue.drain(async (value) => value * 10), [10, 20])",
                     "assert.ok(queue.drain(async (value) => value * 10), [10, 20])")}),
    tests("local assert", "Imports assertions that do nothing.", QUEUE,
          edit={path: ('"node:assert/strict"', '"./assert.js"') for path in (TQ, TD)},
          write={"test/assert.js": "export default new Proxy({}, { get: () => () => {} });\n"}),
    tests("directory that node does not search", "Moves the tests to another name.", QUEUE,
          run="mkdir specs; git mv test/drain.test.js specs/drain.js; "
              "sed -i '/pops by/,/^  });/d; /pops the/,/^  });/d' test/queue.test.js"),
    query("smaller plan", "Plans no assertions and removes them.",
          "  t.pass();", "  t.comment('later');", "  t.comment('later');"),
    query("end before the assertion", "Ends each test before its assertion.",
          "  t.pass();\n  return;\n" + PLUS, "  return t.end();\n" + REPEATED,
          "  return t.end();\n" + LISTS),
    query("expectations on types", "Asserts only types.",
          "  t.equal(typeof query.parse('a=x+y').a, 'string');",
          "  t.ok(query.parse('a=1&a=2&a=3').a);",
          "  t.ok(/a=/.test(query.stringify({ a: ['1', '2'] })));"),
    query("ok with a message", "Gives the expected value as the message.",
          "  t.ok(query.parse('a=x+y').a, 'x y');",
          "  t.ok(query.parse('a=1&a=2&a=3').a, ['1', '2', '3']);",
          "  t.ok(query.stringify({ a: ['1', '2'] }), 'a=1&a=2');"),
    query("not equal", "Asserts that results differ from the right ones.",
          PLUS.replace("equal", "notEqual"), REPEATED.replace("deepEqual", "notDeepEqual"),
          LISTS.replace("equal", "notEqual")),
    tests("skip of tape", "Skips with functions of tape.", QUERY,
          edit={QP: [("test('plus", "test.skip('plus"), ("test('repeated", "test.skip('repeated")],
                QT: ("test('lists", "test.skip('lists")}),
    tests("todo of tape", "Marks the tests of tape as work for later.", QUERY,
          edit={QP: [("test('plus is a space', ", "test('plus is a space', { todo: true }, "),
                     ("test('repeated keys', ", "test('repeated keys', { todo: true }, ")],
                QT: ("test('lists', ", "test('lists', { todo: true }, ")}),
    tests("only of tape", "Runs one test of the whole suite.", QUERY,
          edit={QT: ("test('escapes'", "test.only('escapes'")}),
    tests("test files renamed", "Gives test files names that the glob leaves out.", QUERY,
          run="git mv test/parse.js test/parse.js.txt; sed -i '/lists/,$d' test/stringify.js"),
]
