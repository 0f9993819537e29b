//! Limits, and sources of any content.

use std::time::{Duration, Instant};

use globset::GlobSet;
use hookloop_evidence::{
    EvidenceError, ManifestKind, SCOPE_DEPTH_MAX, SOURCE_BYTES_MAX, SYNTAX_DEPTH_MAX,
    SourceBaseline, SourceLanguage, TESTS_MAX, graft_manifest, graft_tests, role_of, test_modules,
    tests_in,
};
use proptest::prelude::*;

/// The time in which any small source is read, also on a busy machine.
const SMALL_SOURCE_TIME: Duration = Duration::from_secs(20);

const LANGUAGES: [SourceLanguage; 6] = [
    SourceLanguage::Python,
    SourceLanguage::Rust,
    SourceLanguage::JavaScript,
    SourceLanguage::TypeScript,
    SourceLanguage::Tsx,
    SourceLanguage::Go,
];
const KINDS: [ManifestKind; 5] = [
    ManifestKind::Cargo,
    ManifestKind::CargoConfig,
    ManifestKind::Package,
    ManifestKind::PyProject,
    ManifestKind::SetupCfg,
];

/// Sources that have most of the syntax that is read.
const SAMPLES: [&str; 5] = [
    "import pytest\n@pytest.mark.parametrize('a', [(1, 2), (3, 4)])\nclass TestA:\n    async def test_b(self):\n        '''Doc.'''\n        for x in [(1, 'a'), (2, 'b')]:\n            assert f(x, -1) == \"\\x41\\u{e9}\", f'{x!r:>{w}}'\n        if x in ('a', 'b') and y == 17: return {'k': 42}\n        pytest.skip('x')\n",
    "//! Doc.\n#![allow(x)]\n#[cfg(all(test, not(unix)))]\nmod tests {\n    use super::*;\n    #[tokio::test]\n    #[should_panic(expected = \"x\")]\n    async fn a() { assert_eq!(f(\"x\", b'a', -1_000u64, r#\"raw\"#), (1,)); }\n}\nimpl A for B { #[cfg(test)] fn t() {} }\nproptest! { #[test] fn p(x in 0..9u8) { prop_assert!(x < 9); } }\nfn g(n: u8) -> u8 { match n { 17 | 18 => 42, _ => if cfg!(test) { 1 } else { 2 } } }\n",
    "import tap from 'tap'\nconst { test: check } = require('node:test')\ndescribe.each([[1, 2]])('a', () => {\n  it.skip(`b ${1}`, async function () { expect(f('x', 0x10n)).not.toBe(/a b/g); this.skip() })\n})\nif (import.meta.vitest) { check('c', { todo: true }, (t) => { t.test('d', x => x) }) }\nconst m = { hello: 'olleh', 'k k': 17 }\nswitch (x) { case 'aa': return process.env.NODE_ENV === 'test' ? 1 : 2 }\n",
    "package a\nfunc TestA(t *testing.T) {\n\tfor _, c := range []struct{ in, want string }{{\"a\", \"b\"}, {in: `c`, want: \"d\"}} {\n\t\tt.Run(\"x\", func(t *testing.T) { if got := f(c.in); got != 'r' { t.Fatalf(\"%v\", got) } })\n\t}\n}\nfunc ExampleB() {\n\t// Output: x\n}\nfunc g(s string) int { switch s { case \"a\", \"b\": return 17 }; return map[string]int{\"c\": 1}[s] }\n",
    "[package]\nname = \"a\"\n[lib]\ntest = false\n[[test]]\nname = 'x'\n[target.'cfg(unix)'.dev-dependencies]\nx = { version = \"1\" }\n[tool.pytest]\na = [1, {b = 2}]\n[options]\ntests_require =\n    a\n    b\n",
];

/// Calls every function with the sources. Returns whether one of them took too long.
fn read_all(base: &str, work: &str) -> bool {
    let start = Instant::now();
    for language in LANGUAGES {
        let tests = tests_in(language, work);
        let _ = graft_tests(language, base, work);
        let mut baseline = SourceBaseline::default();
        for test in tests.iter().flatten() {
            let _ = baseline.add_assertions(&test.assertions);
        }
        let _ = baseline.add_source(language, base);
        let _ = baseline.suspicions(language, Some(base), work);
    }
    let _ = test_modules(work);
    for kind in KINDS {
        let _ = graft_manifest(kind, base, work);
    }
    role_of(work, &GlobSet::empty());
    start.elapsed() > SMALL_SOURCE_TIME
}

fn sample() -> impl Strategy<Value = String> {
    let part = (0..SAMPLES.len(), any::<prop::sample::Index>(), any::<prop::sample::Index>());
    part.prop_map(|(sample, start, end)| {
        let text = SAMPLES[sample];
        let (start, end) = (start.index(text.len() + 1), end.index(text.len() + 1));
        text.get(start.min(end)..start.max(end)).unwrap_or(text).to_owned()
    })
}

fn changed_sample() -> impl Strategy<Value = String> {
    let change = (any::<prop::sample::Index>(), "[ -~\n]{0,3}");
    (0..SAMPLES.len(), prop::collection::vec(change, 0..4)).prop_map(|(sample, changes)| {
        let mut text = SAMPLES[sample].to_owned();
        for (place, insert) in changes {
            text.insert_str(place.index(text.len() + 1), &insert);
        }
        text
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_text_is_read_without_a_panic(base in "\\PC{0,80}", work in "[\\PC\n]{0,200}") {
        prop_assert!(!read_all(&base, &work));
    }

    #[test]
    fn any_part_of_a_source_is_read_without_a_panic(base in sample(), work in sample()) {
        prop_assert!(!read_all(&base, &work));
    }

    #[test]
    fn changed_sources_are_read_without_a_panic(base in changed_sample(), work in changed_sample()) {
        prop_assert!(!read_all(&base, &work));
    }

    #[test]
    fn texts_of_brackets_are_read_without_a_panic(work in "[\\[\\](){}<>#!\"'`$\n]{0,300}") {
        prop_assert!(!read_all("", &work));
    }
}

#[test]
fn samples_are_read() {
    let languages = [
        SourceLanguage::Python,
        SourceLanguage::Rust,
        SourceLanguage::JavaScript,
        SourceLanguage::Go,
    ];
    for (language, sample) in languages.into_iter().zip(SAMPLES) {
        assert!(!tests_in(language, sample).unwrap().is_empty(), "{sample}");
    }
}

#[test]
fn deep_sources_are_an_error_or_read() {
    let depth = 5_000;
    for (open, close) in [("(", ")"), ("{", "}"), ("f(", ")"), ("-", ""), ("a+", "a"), ("x=>", "")]
    {
        let text = format!("x = {}{}", open.repeat(depth), close.repeat(depth));
        for language in LANGUAGES {
            let start = Instant::now();
            let _ = tests_in(language, &text);
            assert!(start.elapsed() < SMALL_SOURCE_TIME, "{language:?} {open}");
        }
        let array = text.replace(['{', '('], "[").replace(['}', ')'], "]");
        for kind in KINDS {
            let _ = graft_manifest(kind, &array, &text);
        }
    }
    let text = format!("x = {}1{}\n", "(".repeat(SYNTAX_DEPTH_MAX), ")".repeat(SYNTAX_DEPTH_MAX));
    let error = tests_in(SourceLanguage::Python, &text).unwrap_err();
    assert!(matches!(error, EvidenceError::TooDeep { limit: SYNTAX_DEPTH_MAX, .. }), "{error}");
    let keys = "a.".repeat(5_000) + "b = 1";
    let _ = graft_manifest(ManifestKind::PyProject, &format!("tool.pytest.{keys}"), "");
}

#[test]
fn deep_groups_and_large_sources_are_errors() {
    let depth = SCOPE_DEPTH_MAX + 1;
    let text = "describe('a', () => {\n".repeat(depth) + "it('b', () => {})" + &"})".repeat(depth);
    let error = tests_in(SourceLanguage::JavaScript, &text).unwrap_err();
    assert!(matches!(error, EvidenceError::TooDeep { limit: SCOPE_DEPTH_MAX, .. }), "{error}");
    let error = tests_in(SourceLanguage::Go, &" ".repeat(SOURCE_BYTES_MAX + 1)).unwrap_err();
    assert!(matches!(error, EvidenceError::TooMany { limit: SOURCE_BYTES_MAX, .. }), "{error}");
}

#[test]
fn many_tests_are_an_error() {
    let text = "def test_a():x\n".repeat(TESTS_MAX + 1);
    let error = tests_in(SourceLanguage::Python, &text).unwrap_err();
    assert!(matches!(error, EvidenceError::TooMany { limit: TESTS_MAX, .. }), "{error}");
}

#[test]
fn sources_of_one_repeated_part_are_read_soon() {
    let repeated = |part: &str| part.repeat(12_000 / part.len());
    for text in [
        format!("class TestA:\n{}", repeated("  def test_a(self): x\n")),
        format!(
            "C = [{}]\n{}",
            repeated("(1, 2),"),
            "@p.parametrize('a', C)\ndef test_a(): pass\n".repeat(50)
        ),
        format!("package a\nfunc f() {{\n{}}}\n", repeated("x(\".test\", os.Args)\n")),
        format!(
            "package a\nfunc TestA(t *testing.T) {{\nif x {{\n{}}}\n}}\n",
            repeated("t.Error(1)\n")
        ),
        repeated("#[cfg(test)] use a;\n"),
        repeated("impl A { #[cfg(test)] fn a() {} }\n"),
        format!("{}fn f() {{}}", repeated("#[test]\n")),
        format!("f({})", repeated("'tap',")),
    ] {
        assert!(!read_all("", &text), "{}", &text[..60]);
    }
}
