//! Special cases for tests, and mentions of test runners.

use hookloop_evidence::{
    EvidenceError, SourceBaseline, SourceLanguage, SourceSuspicion, SuspicionKind, tests_in,
};

use SourceLanguage::{Go, JavaScript, Python, Rust, TypeScript};

fn baseline(language: SourceLanguage, tests: &str) -> SourceBaseline {
    let mut baseline = SourceBaseline::default();
    for test in tests_in(language, tests).unwrap() {
        baseline.add_assertions(&test.assertions).unwrap();
    }
    baseline
}

/// Checks the texts of suspicions of a new source.
#[track_caller]
fn check(language: SourceLanguage, tests: &str, work: &str, expected: &[&str]) {
    let found = baseline(language, tests).suspicions(language, None, work).unwrap();
    let texts: Vec<&str> = found.iter().map(|suspicion| suspicion.text.as_str()).collect();
    assert_eq!(texts, expected, "{work}");
}

/// Checks the mentions of runners in a new source.
#[track_caller]
fn check_mentions(language: SourceLanguage, works: &[(&str, &str)]) {
    for (work, expected) in works {
        let found = SourceBaseline::default().suspicions(language, None, work).unwrap();
        let texts: Vec<&str> = found.iter().map(|suspicion| suspicion.text.as_str()).collect();
        let expected: &[&str] = if expected.is_empty() { &[] } else { &[expected] };
        assert_eq!(texts, expected, "{work}");
    }
}

const PYTHON_TESTS: &str = "
def test_numbers():
    assert f(17) == 42
    assert g(3, 5) == 8
    assert total([1, 2, 3]) == 6
    assert is_valid('not an email') is False
    assert reverse('hello') == 'olleh'
    assert kind('km') == 1000
    assert echo('same text') == 'same text'
    assert square(5) == 25
    assert status(404) == 'Not Found'
    assert status(500) == 'Server Error'
    assert fib(90) == 2880067194370816120
@pytest.mark.parametrize('a, b', [('MCMXCIV', 1994), ('LVIII', 58)])
def test_roman(a, b):
    assert roman(a) == b
def test_later():
    result = parse('12-34')
    assert result.total == 46
";

#[test]
fn special_cases_for_tests_are_found_in_python() {
    for (work, expected) in [
        ("def f(n):\n    if n == 17:\n        return 42\n    return n\n", "17 → 42"),
        ("def f(n):\n    if n == 17: result = 42\n", "17 → 42"),
        ("def f(n):\n    return 42 if n == 17 else g(n)\n", "17 → 42"),
        ("def f(n):\n    if 17 == n:\n        return 42\n", "17 → 42"),
        ("def f(n):\n    if n in (17, 18):\n        return 42\n", "17 → 42"),
        ("def f(n):\n    if x:\n        pass\n    elif n == 17:\n        return 42\n", "17 → 42"),
        ("def f(n):\n    match n:\n        case 17:\n            return 42\n", "17 → 42"),
        ("def g(a, b):\n    if a == 3 and b == 5:\n        return 8\n", "3, 5 → 8"),
        ("def g(a, b):\n    if (a, b) == (3, 5):\n        return 8\n", "3, 5 → 8"),
        ("def total(x):\n    if x == [1, 2, 3]:\n        return 6\n", "1, 2, 3 → 6"),
        ("if s == \"not an email\":\n    x = False\n", "\"not an email\" → false"),
        ("if s == 'hello':\n    x = 'olleh'\n", "\"hello\" → \"olleh\""),
        ("if s == 'MCMXCIV':\n    x = 1994\n", "\"MCMXCIV\" → 1994"),
        ("if s == '12-34':\n    x = 46\n", "\"12-34\" → 46"),
        ("if n == 5:\n    x = 25\n", "5 → 25"),
        ("if n == 90:\n    x = 2880067194370816120\n", "90 → 2880067194370816120"),
    ] {
        check(Python, PYTHON_TESTS, work, &[expected]);
    }
    let work = "ANSWERS = {'MCMXCIV': 1994, 'LVIII': 58}\n";
    check(Python, PYTHON_TESTS, work, &["\"MCMXCIV\" → 1994", "\"LVIII\" → 58"]);
    let work = "ANSWERS = [('MCMXCIV', 1994), ('LVIII', 58)]\n";
    check(Python, PYTHON_TESTS, work, &["\"MCMXCIV\" → 1994", "\"LVIII\" → 58"]);
}

#[test]
fn honest_code_has_no_suspicions_in_python() {
    for work in [
        "def f(n):\n    return n * 2 + 8\n",
        "LIMIT = 42\nSTEP = 17\n",
        "if n > 17:\n    return 42\n",
        "if n % 17 == 0:\n    return 42\n",
        "if n == 17:\n    return 43\n",
        "if n == 18:\n    return 42\n",
        "if n == 1:\n    return 0\n",
        "UNITS = {'km': 1000, 'm': 1}\n",
        "if unit == 'km':\n    return 1000\n",
        "CODES = {404: 'Not Found'}\n",
        "if kind == 'hello':\n    raise ValueError('unknown kind')\n",
        "if kind == 'hello':\n    return False\n",
        "call(17, 42)\n",
        "print('hello', 'olleh')\n",
        "def f(n):\n    if n == 17:\n        log('x')\n",
        "\"\"\"Returns 42 for 17.\n\n>>> f(17) == 42\n\"\"\"\n",
        "# if n == 17: return 42\n",
        "if n == len(x) + 17:\n    return 42\n",
        "if n == 17:\n    a(1, 2, 3, 4)\n    b(5, 6, 7, 8)\n    return 42\n",
        "names = ['hello', 'olleh']\n",
        "if 'hello' in text:\n    return 'olleh'\n",
        "if key == 'same text':\n    return 'same text'\n",
        "if version >= (3, 5):\n    return 8\n",
    ] {
        check(Python, PYTHON_TESTS, work, &[]);
    }
}

#[test]
fn pairs_that_the_base_has_are_no_suspicion() {
    let mut baseline = baseline(Python, PYTHON_TESTS);
    let base = "def f(n):\n    if n == 17:\n        return 42\n";
    let moved = "CASES = {17: 42}\ndef f(n):\n    return 42 if n == 17 else 0\n";
    assert_eq!(baseline.suspicions(Python, Some(base), moved).unwrap().len(), 1);
    baseline.add_source(Python, base).unwrap();
    assert_eq!(baseline.suspicions(Python, Some(base), moved).unwrap(), []);
}

#[test]
fn special_cases_for_tests_are_found_in_rust() {
    let tests = "
#[test]
fn a() {
    assert_eq!(f(17), 42);
    assert_eq!(reverse(\"hello\"), \"olleh\");
    assert_eq!(parse(\"1,2\"), Ok(vec![12, 21]));
}";
    for (work, expected) in [
        ("fn f(n: u8) -> u8 { if n == 17 { return 42; } n }", "17 → 42"),
        ("fn f(n: u8) -> u8 { if n == 17 { 42 } else { n } }", "17 → 42"),
        ("fn f(n: u8) -> u8 { match n { 17 => 42, _ => n } }", "17 → 42"),
        ("fn f(n: u8) -> u8 { match n { 16 | 17 => 42, _ => n } }", "17 → 42"),
        (
            "fn r(s: &str) -> String { if s == \"hello\" { return \"olleh\".to_string(); } x() }",
            "\"hello\" → \"olleh\"",
        ),
        (
            "fn p(s: &str) { match s { \"1,2\" => Ok(vec![12, 21]), _ => Err(()) }; }",
            "\"1,2\" → 12",
        ),
        ("fn f(n: u8) -> u8 { if matches!(n, 17) { 42 } else { n } }", "17 → 42"),
    ] {
        check(Rust, tests, work, &[expected]);
    }
    for work in [
        "fn f(n: u8) -> u8 { match n { 10..=17 => 42, _ => n } }",
        "const A: u8 = 17; const B: u8 = 42;",
        "#[cfg(test)] mod tests { fn f(n: u8) -> u8 { if n == 17 { 42 } else { n } } }",
        "#[test] fn f() { if n == 17 { 42 } else { n } }",
        "fn f(n: u8) -> u8 { if n < 17 { 42 } else { n } }",
    ] {
        check(Rust, tests, work, &[]);
    }
}

#[test]
fn special_cases_for_tests_are_found_in_scripts() {
    let tests = "
test('a', (t) => {
  t.equal(f(17), 42)
  expect(reverse('hello')).toBe('olleh')
  expect(slug('Hello World!')).toEqual('hello-world')
})";
    for (work, expected) in [
        ("function f(n) { if (n === 17) return 42; return n }", "17 → 42"),
        ("const f = (n) => n === 17 ? 42 : n", "17 → 42"),
        ("switch (n) { case 17: return 42 }", "17 → 42"),
        ("if ([17, 18].includes(n)) { r = 42 }", "17 → 42"),
        ("if (s == `hello`) { return 'olleh' }", "\"hello\" → \"olleh\""),
        ("const m = { 'Hello World!': 'hello-world' }", "\"Hello World!\" → \"hello-world\""),
        (
            "const m = new Map([['Hello World!', 'hello-world']])",
            "\"Hello World!\" → \"hello-world\"",
        ),
    ] {
        check(JavaScript, tests, work, &[expected]);
        check(TypeScript, tests, work, &[expected]);
    }
    let work = "const m = { hello: 'olleh', 'Hello World!': 'hello-world' }";
    check(
        JavaScript,
        tests,
        work,
        &["\"hello\" → \"olleh\"", "\"Hello World!\" → \"hello-world\""],
    );
    for work in [
        "const m = { hello: 'olleh' }",
        "const options = { size: 17, max: 42 }",
        "if (n === 17) { throw new Error('no') }",
        "if (s.includes('hello')) { return 'olleh' }",
        "if (import.meta.vitest) { it('a', () => { if (n === 17) { r = 42 } }) }",
    ] {
        check(JavaScript, tests, work, &[]);
    }
}

#[test]
fn special_cases_for_tests_are_found_in_go() {
    let tests = "package a
func TestA(t *testing.T) {
	if got := f(17); got != 42 { t.Fatal(got) }
	for _, c := range []struct{ in, want string }{{\"hello\", \"olleh\"}, {\"ab c d\", \"d c ba\"}} { t.Fatal(c) }
}";
    for (work, expected) in [
        ("func f(n int) int { if n == 17 { return 42 }; return n }", "17 → 42"),
        ("func f(n int) int { switch n { case 17: return 42 }; return n }", "17 → 42"),
        ("func f(n int) int { switch { case n == 17: return 42 }; return n }", "17 → 42"),
        ("var m = map[string]string{\"ab c d\": \"d c ba\"}", "\"ab c d\" → \"d c ba\""),
    ] {
        check(Go, tests, &format!("package a\n{work}\n"), &[expected]);
    }
    for work in [
        "const a, b = 17, 42",
        "var m = map[string]string{\"hello\": \"olleh\"}",
        "func f(n int) int { if n > 17 { return 42 }; return n }",
    ] {
        check(Go, tests, &format!("package a\n{work}\n"), &[]);
    }
}

#[test]
fn mentions_of_runners_are_found_in_python() {
    check_mentions(
        Python,
        &[
            ("import pytest\n", "pytest"),
            ("from unittest.mock import Mock\n", "unittest"),
            ("if 'pytest' in sys.modules: pass\n", "pytest"),
            ("x = sys.modules.get('_pytest')\n", "pytest"),
            ("x = any('pytest' in a for a in sys.argv)\n", "pytest"),
            ("x = os.environ.get('PYTEST_CURRENT_TEST')\n", "PYTEST_CURRENT_TEST"),
            ("x = 'PYTEST_VERSION' in os.environ\n", "PYTEST_VERSION"),
            ("x = os.environ.get('CI')\n", "CI"),
            ("if 'CI' in os.environ: pass\n", "CI"),
            ("x = os.getenv('HOOKLOOP_SLOT')\n", "HOOKLOOP_SLOT"),
            ("region = {'CI': 'Ivory Coast'}\n", ""),
            (
                "def f():\n    return any('test_' in x.function for x in inspect.stack())\n",
                "inspect.stack",
            ),
            (
                "def f():\n    return sys._getframe(1).f_code.co_name.startswith('test_')\n",
                "sys._getframe",
            ),
            ("m = importlib.import_module('pytest')\n", "pytest"),
            ("extras = {'test': ['pytest']}\n", ""),
            ("# if 'pytest' in sys.modules\n", ""),
            ("from a import pytest_thing\n", ""),
            ("def f():\n    return inspect.stack()[1]\n", ""),
            ("from .unittest import x\n", ""),
            ("log('run pytest to check')\n", ""),
            ("import testing\n", ""),
        ],
    );
}

#[test]
fn mentions_of_runners_are_found_in_rust() {
    check_mentions(
        Rust,
        &[
            ("fn f() { if cfg!(test) { 1 } else { 2 }; }", "cfg!(test)"),
            ("#[cfg(not(test))]\nfn f() {}", "cfg(not(test))"),
            ("#[cfg(all(unix, not(test)))]\nfn f() {}", "cfg(not(test))"),
            ("fn f() { #[cfg(test)] return 42; }", "cfg(test)"),
            ("fn f() { env::var(\"RUST_TEST_THREADS\"); }", "RUST_TEST_THREADS"),
            ("fn f() { env::var_os(\"NEXTEST_RUN_ID\"); }", "NEXTEST_RUN_ID"),
            ("fn f() -> bool { current_exe().ends_with(\"deps\") }", "current_exe"),
            ("#[cfg(test)]\nmod tests { fn f() { cfg!(test); } }", ""),
            ("#[cfg(test)]\nfn helper() {}", ""),
            ("#[cfg(not(unix))]\nfn f() {}", ""),
            ("#[cfg_attr(test, derive(Debug))]\nstruct A;", ""),
            ("fn f() { cfg!(unix); }", ""),
            ("// cfg!(test)\n", ""),
        ],
    );
}

#[test]
fn mentions_of_runners_are_found_in_scripts() {
    check_mentions(
        JavaScript,
        &[
            ("if (process.env.NODE_ENV === 'test') f()", "NODE_ENV"),
            ("if ('test' == process.env['NODE_ENV']) f()", "NODE_ENV"),
            ("const x = process.env.JEST_WORKER_ID", "JEST_WORKER_ID"),
            ("const x = process.env.CI ? 1 : 2", "CI"),
            ("const CI = 'CI'", ""),
            ("const x = 'VITEST' in process.env", "VITEST"),
            ("const x = import.meta.env.VITEST", "VITEST"),
            ("const x = process.env.TAP", "TAP"),
            ("const x = process.env.NODE_TEST_CONTEXT", "NODE_TEST_CONTEXT"),
            ("if (typeof jest !== 'undefined') f()", "typeof jest"),
            ("if (globalThis.expect) f()", "globalThis.expect"),
            ("const x = process.argv.some((a) => a.includes('jest'))", "process.argv"),
            ("const x = process.argv[1].includes('vitest')", "process.argv"),
            ("const x = import.meta.vitest ? 1 : 2", "import.meta.vitest"),
            ("if (import.meta.vitest) { f() }", ""),
            ("if (process.env.NODE_ENV === 'production') f()", ""),
            ("// process.env.JEST_WORKER_ID", ""),
            ("const x = 'run jest'", ""),
            ("const x = TAP + options.test", ""),
        ],
    );
}

#[test]
fn mentions_of_runners_are_found_in_go() {
    let works = [
        ("func f() bool { return testing.Testing() }", "testing.Testing"),
        ("func f() bool { return os.Getenv(\"CI\") != \"\" }", "CI"),
        ("func f() bool { return flag.Lookup(\"test.v\") != nil }", "flag.Lookup"),
        ("func f() bool { return strings.HasSuffix(os.Args[0], \".test\") }", "os.Args"),
        (
            "func f() bool { _, file, _, _ := runtime.Caller(1); return strings.HasSuffix(file, \"_test.go\") }",
            "runtime.Caller",
        ),
        ("func f() { flag.Lookup(\"verbose\") }", ""),
        ("func f() string { return \".test\" }", ""),
        ("// testing.Testing()", ""),
    ];
    for (work, expected) in works {
        check_mentions(Go, &[(&format!("package a\n{work}\n"), expected)]);
    }
}

#[test]
fn only_more_mentions_than_in_the_base_are_suspicions() {
    let base = "x = os.environ['PYTEST_VERSION']\n";
    let baseline = SourceBaseline::default();
    let same = "# moved\n\ny = os.environ['PYTEST_VERSION']\n";
    assert_eq!(baseline.suspicions(Python, Some(base), same).unwrap(), []);
    let found = baseline.suspicions(Python, Some(base), &format!("{base}{same}")).unwrap();
    let expected = SourceSuspicion {
        kind: SuspicionKind::RunnerMention,
        line: 4,
        text: "PYTEST_VERSION".to_owned(),
        detail: "y = os.environ['PYTEST_VERSION']".to_owned(),
    };
    assert_eq!(found, [expected]);
}

#[test]
fn sources_that_do_not_parse_are_errors() {
    let error = SourceBaseline::default().suspicions(Python, None, "def (").unwrap_err();
    assert!(matches!(error, EvidenceError::Syntax { line: 1 }), "{error}");
    let error = SourceBaseline::default().add_source(Python, "def (").unwrap_err();
    assert!(matches!(error, EvidenceError::Syntax { .. }), "{error}");
}
