//! Tests of pytest and unittest.

use hookloop_evidence::{EvidenceError, SourceLanguage, tests_in};

use crate::{check_assertions, check_names, check_same};

const PYTHON: SourceLanguage = SourceLanguage::Python;

#[test]
fn functions_and_methods_named_test_are_tests() {
    let source = "
import pytest
def test_a(): pass
async def test_b(): pass
def helper():
    def test_inner(): pass
class TestC:
    def test_d(self): pass
    class TestE:
        def test_f(self): pass
    def other(self): pass
class Checks(unittest.TestCase):
    def testG(self): pass
class MixinTests:
    def test_h(self): pass
class Other:
    def test_i(self): pass
if True:
    def test_j(): pass
";
    let names = [
        "3 test_a",
        "4 test_b",
        "8 TestC::test_d",
        "10 TestC::TestE::test_f",
        "13 Checks::testG",
        "15 MixinTests::test_h",
        "19 test_j",
    ];
    check_names(PYTHON, source, &names);
}

#[test]
fn marks_calls_and_classes_skip_tests() {
    let source = "
@pytest.mark.skip
def test_a(): pass
@pytest.mark.skipif(sys.platform == 'win32', reason='x')
def test_b(): pass
@mark.xfail(strict=True)
def test_c(): pass
@unittest.skip('x')
def test_d(): pass
@expectedFailure
def test_e(): pass
def test_f():
    pytest.skip('later')
def test_g(self):
    if x:
        self.skipTest('x')
def test_h():
    raise unittest.SkipTest('x')
@pytest.mark.parametrize('a', [pytest.param(1, marks=pytest.mark.xfail)])
def test_i(a): pass
@unittest.skipIf(True, 'x')
class TestX:
    def test_j(self): pass
class TestY:
    pytestmark = [pytest.mark.skip]
    def test_k(self): pass
class TestZ:
    __test__ = False
    def test_l(self): pass
@pytest.mark.parametrize('a', [1])
def test_m(a): skip = 1
";
    let found = tests_in(PYTHON, source).unwrap();
    let skipped = found.iter().filter(|test| test.is_skipped);
    let names: String = skipped.map(|test| test.name.trim_start_matches("test_")).collect();
    assert_eq!(names, "abcdefghijkl");
}

#[test]
fn a_module_skips_all_its_tests() {
    for line in [
        "pytestmark = pytest.mark.skip(reason='x')",
        "pytest.skip('x', allow_module_level=True)",
        "x = pytest.importorskip('x')",
        "if True:\n    raise unittest.SkipTest('x')",
    ] {
        let found = tests_in(PYTHON, &format!("{line}\ndef test_a(): pass\n")).unwrap();
        assert!(found[0].is_skipped, "{line}");
    }
}

#[test]
fn assertions_have_inputs_and_outcomes() {
    let source = "
def test_a(self):
    text = read('in.txt')
    assert text.a == 3
    assert f('x', -1) == \"y\"  # note
    self.assertEqual(g(1_000), [None, True])
    with pytest.raises(ValueError, match='bad'):
        h('z')
";
    check_assertions(
        PYTHON,
        source,
        &[
            ("assert text . a == 3", "\"in.txt\"", "3"),
            ("assert f ( \"x\" , - 1 ) == \"y\"", "\"x\" -1", "\"y\""),
            ("self . assertEqual ( g ( 1_000 ) , [ None , True ] )", "1000", "null true"),
            ("pytest . raises ( ValueError , match = \"bad\" )", "\"in.txt\"", "\"bad\""),
        ],
    );
}

#[test]
fn rows_of_tables_are_assertions() {
    let source = "
CASES = [('c', 3)]
@pytest.mark.parametrize('a, b', [('a', 1), pytest.param('b', 2)])
@pytest.mark.parametrize('c', CASES)
def test_a(a, b, c):
    for x, y in [(4, 5), (6, 7)]:
        assert x
";
    check_assertions(
        PYTHON,
        source,
        &[
            ("( \"a\" , 1 )", "\"a\"", "1"),
            ("pytest . param ( \"b\" , 2 )", "\"b\"", "2"),
            ("( \"c\" , 3 )", "\"c\"", "3"),
            ("( 4 , 5 )", "4", "5"),
            ("( 6 , 7 )", "6", "7"),
            ("assert x", "", ""),
        ],
    );
}

#[test]
fn format_comments_and_names_do_not_change_the_text() {
    let same = [
        (
            "def test_a():\n  assert f( 1,2 ) # x\n",
            "def test_b():\n    '''Doc.'''\n    assert f(\n        1,\n        2,\n    )\n",
        ),
        ("def test_a():\n    x = 'a'; y = u\"b\"\n", "def test_a():\n    x = \"a\"\n    y = 'b'\n"),
        ("@mark(1)\ndef test_a(): pass", "@mark(1)\n# why\ndef test_a():\n\n    pass\n"),
    ];
    for (left, right) in same {
        check_same(PYTHON, left, right, true);
    }
    let different = [
        ("def test_a():\n    assert x\n", "def test_a():\n    assert y\n"),
        ("@mark(1)\ndef test_a(): pass\n", "def test_a(): pass\n"),
        (
            "def test_a():\n    if x:\n        a()\n    b()\n",
            "def test_a():\n    if x:\n        a()\n        b()\n",
        ),
        ("def test_a():\n    x = (1,)\n", "def test_a():\n    x = (1)\n"),
        ("def test_a():\n    x = 'a b'\n", "def test_a():\n    x = 'a  b'\n"),
        ("def test_a():\n    x = b'a'\n", "def test_a():\n    x = 'a'\n"),
        ("def test_a():\n    x = f'{a} b'\n", "def test_a():\n    x = f'{a}  b'\n"),
        ("def test_a():\n    a\n    (b)\n", "def test_a():\n    a(b)\n"),
    ];
    for (left, right) in different {
        check_same(PYTHON, left, right, false);
    }
}

#[test]
fn a_syntax_error_is_no_empty_success() {
    let error = tests_in(PYTHON, "def test_a():\n    assert (\n").unwrap_err();
    assert!(matches!(error, EvidenceError::Syntax { .. }), "{error}");
    check_names(PYTHON, "", &[]);
}
