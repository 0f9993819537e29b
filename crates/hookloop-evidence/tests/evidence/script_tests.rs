//! Tests of JavaScript and TypeScript.

use hookloop_evidence::SourceLanguage;

use crate::{check_assertions, check_names, check_same};

const SCRIPT: SourceLanguage = SourceLanguage::JavaScript;

#[test]
fn calls_of_test_functions_are_tests() {
    let source = "
describe('group', () => {
  it('a', () => {})
  context(`inner`, function () {
    specify('b', async () => {})
    it.each([[1, 2]])('c %s', (x, y) => {})
    test.concurrent.each`x|y\n${1}|${2}`('d', () => {})
  })
  it(name, () => {})
})
describe.each([1])('each', () => { it('e', () => {}) });
/re/.test('no')
pattern.test('no')
test.describe('play', () => { test('f', async ({ page }) => {}) })
test('g', { timeout: 5 }, () => {})
Deno.test('h', () => {})
const other = x.map((test) => test.name);
";
    check_names(
        SCRIPT,
        source,
        &[
            "3 group::a",
            "5 group::inner::b",
            "6 group::inner::c %s",
            "7 group::inner::d",
            "10 group::name",
            "12 each::e",
            "15 play::f",
            "16 g",
            "17 h",
        ],
    );
}

#[test]
fn runners_with_other_names_are_found() {
    let source = "
const test2 = require('tape')
import tap from 'tap'
import { it as check, describe as group } from 'vitest'
const { test: ava } = require('node:test')
test2('a', (t) => {
  t.test('inner', (t) => { t.end() })
  t.test('options', { skip: true }, (t) => { t.end() })
})
tap.test('b', async (t) => {})
group('g', () => { check('c', () => {}) })
ava('d', () => {})
test2('e', macro, 1)
";
    check_names(
        SCRIPT,
        source,
        &["6 a", "7 a::inner", "8 a::options skip", "10 b", "11 g::c", "12 d", "13 e"],
    );
}

#[test]
fn names_options_and_calls_skip_tests() {
    let source = "
it.skip('a', () => {})
xit('b', () => {})
test.todo('c')
it.failing('d', () => {})
test.fails('e', () => {})
test.skipIf(x)('f', () => {})
test('g', { skip: 'later' }, () => {})
it('h', function () { this.skip() })
test('i', (t) => { t.skip('x') })
it('j')
describe.skip('group', () => { it('k', () => {}) })
xdescribe('group', () => { it('l', () => {}) })
test('m', { skip: false }, () => {})
it.only('n', () => { list.skip(1) })
";
    let found = hookloop_evidence::tests_in(SCRIPT, source).unwrap();
    let skipped = found.iter().filter(|test| test.is_skipped);
    let names: String = skipped.map(|test| test.name.as_str()).collect();
    assert_eq!((names.as_str(), found.len()), ("abcdefghijkl", 14));
}

#[test]
fn assertions_have_inputs_and_outcomes() {
    let source = "
test('a', (t) => {
  const parsed = parse('in')
  t.equal(parsed.b, 1)
  expect(f('x', -2)).not.toBe(\"y\")
  assert.deepStrictEqual(g(3), [null, true])
  t.plan(2)
  t.test('inner', (t) => { t.equal(8, 9) })
  t.end()
})";
    let tests = hookloop_evidence::tests_in(SCRIPT, source).unwrap();
    let own: Vec<&str> = tests[0].assertions.iter().map(|own| own.text.as_str()).collect();
    assert_eq!(
        own,
        [
            "t . equal ( parsed . b , 1 )",
            "expect ( f ( \"x\" , - 2 ) ) . not . toBe ( \"y\" )",
            "assert . deepStrictEqual ( g ( 3 ) , [ null , true ] )",
        ]
    );
    assert_eq!(tests[0].assertions[0].inputs, ["\"in\""]);
    assert_eq!(tests[0].assertions[1].outcomes, ["\"y\""]);
    assert_eq!(tests[1].assertions.len(), 1);
}

#[test]
fn tables_and_properties_are_assertions() {
    let source = "
it.each([['a', 1], ['b', 2]])('x', (a, b) => {
  expect(a).to.be.true
  a.should.eql('c')
  for (const [x, y] of [[3, 4], [5, 6]]) {}
})";
    check_assertions(
        SCRIPT,
        source,
        &[
            ("[ \"a\" , 1 ]", "\"a\"", "1"),
            ("[ \"b\" , 2 ]", "\"b\"", "2"),
            ("expect ( a ) . to . be . true", "", ""),
            ("a . should . eql ( \"c\" )", "", "\"c\""),
            ("[ 3 , 4 ]", "3", "4"),
            ("[ 5 , 6 ]", "5", "6"),
        ],
    );
}

#[test]
fn format_comments_and_titles_do_not_change_the_text() {
    let test = |body: &str| format!("test('a', () => {{ {body}\n }})");
    let same = [
        ("f(1, 'x')", "f(\n1,\n\"x\",\n); // note"),
        ("a(x => x)", "a((x) => x)"),
        ("a(); b()", "a()\nb()"),
    ];
    for (left, right) in same {
        check_same(SCRIPT, &test(left), &test(right), true);
    }
    check_same(SCRIPT, "test('a', () => {})", "test(\"other\", () => {})", true);
    for (left, right) in [
        ("f(1)", "f(2)"),
        ("return\nx", "return x"),
        ("f([1,,])", "f([1,])"),
        ("f(`a b`)", "f(`a  b`)"),
        ("f(/a b/)", "f(/a  b/)"),
    ] {
        check_same(SCRIPT, &test(left), &test(right), false);
    }
    check_same(SCRIPT, "test('a', () => {})", "test.skip('a', () => {})", false);
}

#[test]
fn typescript_is_read() {
    let source = "
describe('a', () => {
  it('b', async (): Promise<void> => { expect(f<number>('x' as string)!).toBe(1 satisfies number) })
})";
    check_names(SourceLanguage::TypeScript, source, &["3 a::b"]);
    let source = "test('a', () => { render(<App x={1}>text</App>) })";
    check_names(SourceLanguage::Tsx, source, &["1 a"]);
    check_names(SourceLanguage::JavaScript, source, &["1 a"]);
}
