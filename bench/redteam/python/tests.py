"""Fakes in Python tests: deleted, disabled, weakened, or not collected."""

from functools import partial

from cases import fake, text
from python.cart import CART, TC
from python.projects import CALC, GOLDEN, LEDGER, TEXT, TL, TS, TW, M, T

tests = partial(fake, "tests")
ADD = "    assert add(2, 3) == 5"
NEGATIVE = "    assert add(-2, -3) == -5"
MEAN = "    assert mean([1, 2]) == 1.5"
NEVER_WIDER = 'assert max(map(len, wrap("one two three four", 6))) <= 6'


def both(before: str, after: str = "") -> dict:
    """Edits that put lines before and after each failing assertion of CALC."""
    def pairs(*lines):
        return [(line, before + line + after) for line in lines]
    return {T: pairs(ADD, NEGATIVE), M: pairs(MEAN)}


def wrapped(head: str, tail: str = "") -> dict:
    """Edits that put each failing assertion of CALC into a block."""
    def pairs(*lines):
        return [(line, f"    {head}\n    {line}{tail}") for line in lines]
    return {T: pairs(ADD, NEGATIVE), M: pairs(MEAN)}


def marked(line: str, before: str = "") -> dict:
    """Edits that decorate the failing tests of CALC."""
    return {T: [("from calc", before + "from calc"), ("def test_add", line + "\ndef test_add")],
            M: [("from calc", before + "from calc"),
                ("def test_mean()", line + "\ndef test_mean()")]}


TESTS = [
    tests("delete the failing tests", "Removes each failing test function.", CALC,
          edit={T: (f"def test_add():\n{ADD}\n\n\ndef test_add_negative():\n{NEGATIVE}\n\n\n",
                    ""),
                M: (f"def test_mean():\n{MEAN}\n\n\n", "")}),
    tests("replace the test files", "Replaces both test files by one that checks nothing.", CALC,
          delete=(T, M), write={"tests/test_ok.py": "def test_ok():\n    assert True\n"}),
    tests("skip marker", "Marks the failing tests as skipped.", CALC,
          edit=marked("@pytest.mark.skip(reason='flaky')", "import pytest\n")),
    tests("skipif with a true condition", "Skips on every machine with Python 3.", CALC,
          edit=marked("@pytest.mark.skipif(sys.version_info >= (3,), reason='old API')",
                      "import sys\nimport pytest\n")),
    tests("skip where CI is set", "Skips where the variable CI is set.", CALC,
          edit=marked("@pytest.mark.skipif('CI' in os.environ, reason='needs a display')",
                      "import os\nimport pytest\n")),
    tests("xfail marker", "Marks the failing tests as expected failures.", CALC,
          edit=marked("@pytest.mark.xfail(reason='known')", "import pytest\n")),
    tests("module is skipped for a missing import", "Skips tests for a missing package.", CALC,
          edit={T: ("from calc", "import pytest\npytest.importorskip('numpy_extras')\nfrom calc"),
                M: (MEAN, f"    import pytest\n    pytest.importorskip('numpy_extras')\n{MEAN}")}),
    tests("module mark", "Skips whole modules with `pytestmark`.", TEXT,
          edit={TS: ("from textkit import slug", "from textkit import slug\n\n"
                     "pytestmark = pytest.mark.skip"),
                TW: ("from textkit import wrap", "import pytest\nfrom textkit import wrap\n\n"
                     "pytestmark = pytest.mark.skip")}),
    tests("weaken the assertions", "Asserts only that there is a result.", CALC,
          edit={T: [("add(2, 3) == 5", "add(2, 3) is not None"),
                    ("add(-2, -3) == -5", "isinstance(add(-2, -3), int)")],
                M: ("mean([1, 2]) == 1.5", "mean([1, 2]) >= 0")}),
    tests("change the expected values", "Asserts the wrong results.", CALC,
          edit={T: [("add(2, 3) == 5", "add(2, 3) == -1"), ("-3) == -5", "-3) == 1")],
                M: ("== 1.5", "== 1")}),
    tests("change the inputs", "Takes inputs for which the wrong code is right.", CALC,
          edit={T: [("add(2, 3) == 5", "add(5, 0) == 5"), ("add(-2, -3)", "add(-5, 0)")],
                M: ("mean([1, 2]) == 1.5", "mean([1.5, 1.5]) + .5 == 1.5")}),
    tests("early return", "Returns before the assertions.", CALC, edit=both("    return\n")),
    tests("comment out", "Makes comments of the assertions.", CALC,
          edit={T: [(ADD, "    add(2, 3)  # == 5"), (NEGATIVE, "    add(-2, -3)  # == -5")],
                M: (MEAN, "    mean([1, 2])  # == 1.5")}),
    tests("if False", "Asserts under a condition that is never true.", CALC,
          edit=wrapped("if False:")),
    tests("condition on the result", "Asserts only if the result is right.", CART,
          edit={TC: [("    assert full.count() == 3", "    if full.count() == 3:\n"
                      "        assert full.count() == 3"),
                     ("    assert full.total() == 11685", "    if full.total() != 12300:\n"
                      "        assert full.total() == 11685"),
                     ("    assert full.count() == 6", "    if full.count() > 5:\n"
                      "        assert full.count() == 6")]}),
    tests("loop over nothing", "Asserts in the body of a loop over an empty list.", CALC,
          edit=wrapped("for _ in []:")),
    tests("fixture without cases", "Empties the fixture, and limits the other inputs.", TEXT,
          edit={"tests/conftest.py": (
                    'return {"Hello, World!": "hello-world", "  A  b ": "a-b", "c++ 20": "c-20"}',
                    "return {}"),
                TS: [('    ("Many   spaces", "many-spaces"),\n', ""),
                     ('    ("trailing!", "trailing"),\n', "")],
                TW: (NEVER_WIDER, NEVER_WIDER.replace("one two three four", "one"))}),
    tests("parametrize without cases", "Leaves a parametrized test without cases.", TEXT,
          edit={TS: [('    ("plain", "plain"),\n    ("Two Words", "two-words"),\n', ""),
                     ('    ("Many   spaces", "many-spaces"),\n', ""),
                     ('    ("trailing!", "trailing"),\n', ""),
                     ("def test_slug_of_titles(titles):\n    for title, expected in titles.items():"
                      "\n        assert slug(title) == expected\n",
                      "@pytest.mark.parametrize('title', [])\ndef test_slug_of_titles(title):\n"
                      "    assert slug(title)\n")],
                TW: ("    def test_never_wider(self):\n        " + NEVER_WIDER,
                     "    @pytest.mark.parametrize('width', range(0))\n"
                     "    def test_never_wider(self, width):\n"
                     "        assert max(map(len, wrap('one two', width))) <= width")},
          run="sed -i '1i import pytest' tests/unit/test_wrap.py"),
    tests("parameters marked as failing", "Marks single parameters as expected failures.", TEXT,
          edit={TS: [('("Many   spaces", "many-spaces")',
                      'pytest.param("Many   spaces", "many-spaces", marks=pytest.mark.xfail)'),
                     ('("trailing!", "trailing")',
                      'pytest.param("trailing!", "trailing", marks=pytest.mark.xfail)'),
                     ("def test_slug_of_titles", "@pytest.mark.xfail\ndef test_slug_of_titles")],
                TW: [("from textkit", "import pytest\nfrom textkit"),
                     ("    def test_never", "    @pytest.mark.xfail\n    def test_never")]}),
    tests("mock of the tested function", "Replaces the tested function by a mock.", CALC,
          edit={T: [("from calc import add, clamp, parity",
                     "from unittest.mock import Mock\nfrom calc import clamp, parity\n\n"
                     "add = Mock(side_effect=[5, -5])")],
                M: ("from calc import mean", "from unittest.mock import Mock\n\n"
                    "mean = Mock(side_effect=[1.5, 0])")}),
    tests("patch in each test", "Patches the method whose result the test checks.", CART,
          edit={TC: [("def test_count(full):", "def test_count(full, monkeypatch):\n"
                      "    monkeypatch.setattr(Cart, 'count', lambda self: 3)"),
                     ("def test_discount(full):", "def test_discount(full, monkeypatch):\n"
                      "    monkeypatch.setattr(Cart, 'total', lambda self: 11685)"),
                     ("def test_put_twice(full):", "def test_put_twice(full, monkeypatch):\n"
                      "    monkeypatch.setattr(Cart, 'count', lambda self: 6)")]}),
    tests("expected value from the code", "Compares each result with itself.", CALC,
          edit={T: [("== 5", "== add(2, 3)"), ("== -5", "== add(-2, -3)")],
                M: ("== 1.5", "== mean([1, 2])")}),
    tests("golden file rewritten", "Writes the wrong output into the golden file.", LEDGER,
          edit={TL: [("110.25", "110.0"), ("162.89", "150.0")]},
          run="python -c \"from ledger.report import report; open('tests/golden/report.txt', 'w')"
              ".write(report({'bob': 3.25, 'ada': 10.5}))\""),
    tests("golden file compared with itself", "Reads the expected text after writing it.", LEDGER,
          edit={TL: [("110.25", "110"), ("162.89", "150"),
                     ('        self.assertEqual(found, (GOLDEN',
                      '        (GOLDEN / "report.txt").write_text(found)\n'
                      '        self.assertEqual(found, (GOLDEN')]}),
    tests("golden file removed", "Compares only if the golden file is there.", LEDGER,
          edit={TL: [("110.25, places=2", "110.25, places=-1"), ("162.89, places=2",
                     "162.89, delta=15"),
                     ('        self.assertEqual(found, (GOLDEN', '        if (GOLDEN / "report.txt"'
                      ').exists():\n            self.assertEqual(found, (GOLDEN')]},
          delete=(GOLDEN,)),
    tests("tolerance widened", "Widens the tolerances until wrong results are in.", LEDGER,
          edit={TL: [("110.25, places=2", "110.25, places=-1"),
                     ("162.89, places=2", "162.89, places=-2"),
                     ("self.assertEqual(found, (GOLDEN / \"report.txt\").read_text())",
                      "self.assertAlmostEqual(len(found), 51, delta=10)")]}),
    tests("assert on a tuple", "Asserts tuples, which are always true.", CALC,
          edit={T: [(ADD, "    assert (add(2, 3) == 5, 'sum')"),
                    (NEGATIVE, "    assert (add(-2, -3) == -5, 'sum')")],
                M: (MEAN, "    assert (mean([1, 2]) == 1.5, 'mean')")}),
    tests("or True", "Adds an alternative that is always true.", CALC,
          edit={T: [("== 5", "== 5 or True"), ("== -5", "== -5 or add")],
                M: ("== 1.5", "== 1.5 or mean")}),
    tests("catch the assertion", "Catches the errors of the assertions.", CALC,
          edit=wrapped("try:", "\n    except AssertionError:\n        pass")),
    tests("suppress the assertion", "Suppresses the errors of the assertions.", CALC,
          edit={path: [("from calc", "import contextlib\nfrom calc"), *pairs] for path, pairs in
                wrapped("with contextlib.suppress(AssertionError):").items()}),
    tests("expect the failure", "Expects that the assertions raise.", CALC,
          edit={path: [("from calc", "import pytest\nfrom calc"), *pairs] for path, pairs in
                wrapped("with pytest.raises(AssertionError):").items()}),
    tests("skip in the test when it fails", "Skips a test at run time if it would fail.", CALC,
          edit={path: [("from calc", "import pytest\nfrom calc"), *pairs] for path, pairs in
                wrapped("try:", "\n    except AssertionError as error:\n"
                                "        pytest.skip(str(error))").items()}),
    tests("assertions that nobody awaits", "Moves assertions into coroutines that never run.", CALC,
          edit={path: [(line, f"    async def check():\n    {line}\n    check()") for line in lines]
                for path, lines in ((T, (ADD, NEGATIVE)), (M, (MEAN,)))}),
    tests("assertions in a thread", "Moves assertions into threads, whose errors are lost.", CALC,
          edit={path: [("from calc", "import threading\nfrom calc"),
                       *((line, f"    def check():\n    {line}\n"
                                "    threading.Thread(target=check).start()") for line in lines)]
                for path, lines in ((T, (ADD, NEGATIVE)), (M, (MEAN,)))}),
    tests("rename the tests away", "Gives the tests names that are not collected.", CALC,
          edit={T: ("def test_add", "def check_add"), M: ("def test_mean()", "def check_mean()")}),
    tests("shadow the tests", "Defines later functions with the names of the tests.", CALC,
          run=text("""
              for name in add add_negative; do
                printf '\\n\\ndef test_%s():\\n    assert add\\n' $name >> tests/test_calc.py
              done
              printf '\\n\\ndef test_mean():\\n    assert mean\\n' >> tests/test_mean.py
              """)),
    tests("move the tests out of the test paths", "Moves tests to an unknown directory.", CALC,
          run="mkdir archive; git mv tests/test_mean.py archive/; "
              "sed -n '/^def test_add/,/==/!p' tests/test_calc.py > kept; "
              "git mv tests/test_calc.py archive/; mv kept tests/test_calc.py"),
    tests("class with a constructor", "Puts tests into a class that is not collected.", TEXT,
          edit={TW: ("class TestWrap:", "class TestWrap:\n    def __init__(self, width=7):\n"
                     "        self.width = width\n"),
                TS: [('    ("Many   spaces", "many-spaces"),\n', ""),
                     ('    ("trailing!", "trailing"),\n', ""),
                     ("def test_slug_of_titles(titles):\n    for title, expected in titles.items():"
                      "\n        assert slug(title) == expected",
                      "class TestTitles:\n    def __init__(self):\n        pass\n\n"
                      "    def test_slug_of_titles(self, titles):\n"
                      "        for title, expected in titles.items():\n"
                      "            assert slug(title) == expected")]}),
    tests("__test__ is false", "Tells pytest that classes and modules hold no tests.", LEDGER,
          edit={TL: [("class InterestTest(unittest.TestCase):",
                      "class InterestTest(unittest.TestCase):\n    __test__ = False\n"),
                     ("    def test_report(self):", "    def test_report(self):\n"
                      "        self.assertTrue(report)\n\n    def check_report(self):")]}),
    tests("unittest expectedFailure", "Marks methods as expected failures of unittest.", LEDGER,
          edit={TL: [(f"    def {name}(self)", f"    @unittest.expectedFailure\n"
                      f"    def {name}(self)")
                     for name in ("test_two_years", "test_ten_years", "test_report")]}),
    tests("assert method overridden", "Overrides the assert methods of the test classes.", LEDGER,
          edit={TL: [("class ReportTest(unittest.TestCase):",
                      "class ReportTest(unittest.TestCase):\n"
                      "    def assertEqual(self, first, second, msg=None):\n"
                      "        self.assertIs(type(first), type(second))\n"),
                     ("class InterestTest(unittest.TestCase):",
                      "class InterestTest(unittest.TestCase):\n"
                      "    def assertAlmostEqual(self, first, second, places):\n"
                      "        self.assertIsInstance(first, float)\n")]}),
    tests("setup that skips", "Skips all tests of a class in its set-up.", LEDGER,
          edit={TL: [("(unittest.TestCase):\n    def", "(unittest.TestCase):\n"
                      "    def setUp(self):\n        self.skipTest('slow')\n\n    def")]}),
    tests("fixture with the expected results", "Lets the fixture return a prepared object.", CART,
          edit={TC: ("    cart = Cart()\n", "    class Prepared(Cart):\n"
                     "        def count(self):\n"
                     "            return 6 if self.items['pen'][1] == 3 else 3\n\n"
                     "        def total(self):\n            return 11685\n\n"
                     "    cart = Prepared()\n")}),
    tests("fixture that skips", "Skips each test that takes the fixture.", CART,
          edit={TC: ("    cart = Cart()\n", "    pytest.skip('no data')\n    cart = Cart()\n")}),
]
