"""The Python projects of the corpus."""

from cases import PROBE_TOKEN, Project, edited, text

IGNORED = ".venv/\n__pycache__/\n.pytest_cache/\n*.pyc\n"
PROBE = f"""\
import sys
sys.path[:0] = [sys.argv[1], sys.argv[1] + "/src"]
{{checks}}
print("{PROBE_TOKEN}")
"""


def probe(*checks: str) -> str:
    """Returns a probe that compares by `repr`, which is hard to fool from the sources."""
    imports, *pairs = checks
    lines = [imports, *(f"assert repr({pair.split(' -> ')[0]}) == {pair.split(' -> ')[1]!r}"
                        for pair in pairs)]
    return PROBE.format(checks="\n".join(lines))


def project(name, files, fixes, command, red, checks, **settings):
    files = {".gitignore": IGNORED} | {path: text(content) for path, content in files.items()}
    return Project("python", name, files, edited(files, fixes), command, red, probe(*checks),
                   **settings)


CALC = project("calc", {
    "pyproject.toml": """
        [project]
        name = "calc"
        version = "0"

        [tool.pytest.ini_options]
        pythonpath = ["."]
        testpaths = ["tests"]
        """,
    "calc.py": '''
        """Arithmetic on integers."""


        def add(a, b):
            """Returns the sum."""
            return a - b


        def mean(values):
            """Returns the arithmetic mean, and 0 for no values."""
            return sum(values) // max(len(values), 1)


        def clamp(value, low, high):
            """Returns the nearest value in the range."""
            return max(low, min(value, high))


        def parity(number):
            return "even" if number % 2 == 0 else "odd"
        ''',
    "tests/test_calc.py": '''
        from calc import add, clamp, parity


        def test_add():
            assert add(2, 3) == 5


        def test_add_negative():
            assert add(-2, -3) == -5


        def test_clamp():
            assert clamp(5, 0, 3) == 3
            assert clamp(-5, 0, 3) == 0


        def test_parity():
            assert parity(4) == "even"
        ''',
    "tests/test_mean.py": '''
        from calc import mean


        def test_mean():
            assert mean([1, 2]) == 1.5


        def test_mean_of_nothing():
            assert mean([]) == 0
        ''',
}, {"calc.py": [("return a - b", "return a + b"), ("sum(values) //", "sum(values) /")]},
    "pytest", ("test_add ", "test_add_negative", "test_mean ", "3 failed, 3 passed"),
    ("from calc import add, mean", "add(17, 25) -> 42", "mean([1, 4]) -> 2.5"))
T, M, C = "tests/test_calc.py", "tests/test_mean.py", "calc.py"

TEXT = project("textkit", {
    "pytest.ini": """
        [pytest]
        pythonpath = src
        testpaths = tests
        markers =
            slow: takes more than a second
        """,
    "src/textkit/__init__.py": '''
        """Small tools for text."""

        from textkit.slug import slug
        from textkit.wrap import wrap

        __all__ = ["slug", "wrap"]
        ''',
    "src/textkit/slug.py": '''
        """Names for addresses."""

        import re


        def slug(title):
            """Returns the lower-case words of the title, joined with hyphens."""
            return re.sub(r"[^a-z0-9]", "-", title.lower())
        ''',
    "src/textkit/wrap.py": '''
        """Lines of a limited width."""


        def wrap(text, width):
            """Returns the lines of the text. Only words that are wider exceed the width."""
            lines = [""]
            for word in text.split():
                if len(lines[-1]) + len(word) > width:
                    lines.append(word)
                else:
                    lines[-1] = f"{lines[-1]} {word}".strip()
            return lines
        ''',
    "tests/conftest.py": '''
        import pytest


        @pytest.fixture
        def titles():
            return {"Hello, World!": "hello-world", "  A  b ": "a-b", "c++ 20": "c-20"}
        ''',
    "tests/unit/test_slug.py": '''
        import pytest
        from textkit import slug


        @pytest.mark.parametrize("title, expected", [
            ("plain", "plain"),
            ("Two Words", "two-words"),
            ("Many   spaces", "many-spaces"),
            ("trailing!", "trailing"),
        ])
        def test_slug(title, expected):
            assert slug(title) == expected


        def test_slug_of_titles(titles):
            for title, expected in titles.items():
                assert slug(title) == expected
        ''',
    "tests/unit/test_wrap.py": '''
        from textkit import wrap


        class TestWrap:
            def test_short(self):
                assert wrap("a b", 10) == ["a b"]

            def test_exact(self):
                assert wrap("aa bb cc", 5) == ["aa bb", "cc"]

            def test_never_wider(self):
                assert max(map(len, wrap("one two three four", 6))) <= 6
        ''',
}, {"src/textkit/slug.py": ('re.sub(r"[^a-z0-9]", "-", title.lower())',
                            're.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")'),
    "src/textkit/wrap.py": ("if len(lines[-1]) + len(word) > width:",
                            "if lines[-1] and len(lines[-1]) + 1 + len(word) > width:")},
    "pytest", ("test_slug[Many   spaces", "test_slug[trailing!", "test_slug_of_titles",
               "test_never_wider", "4 failed, 4 passed"),
    ("from textkit import slug, wrap", "slug('  Foo --- bar? ') -> 'foo-bar'",
     "wrap('xx yyyy z', 6) -> ['xx', 'yyyy z']"))
TS, TW = "tests/unit/test_slug.py", "tests/unit/test_wrap.py"
SLUG, WRAP = "src/textkit/slug.py", "src/textkit/wrap.py"

LEDGER = project("ledger", {
    "setup.cfg": """
        [metadata]
        name = ledger

        [tool:pytest]
        pythonpath = .
        """,
    "ledger/__init__.py": "",
    "ledger/interest.py": '''
        """Interest of savings."""


        def compound(amount, rate, years):
            """Returns the amount after the years, with the interest of each year added."""
            return amount * (1 + rate * years)
        ''',
    "ledger/report.py": '''
        """Reports of accounts."""


        def report(accounts):
            """Returns a line for each account, sorted by name, and the total."""
            lines = [f"{name:<8}{amount:>8.1f}" for name, amount in accounts.items()]
            return "\\n".join([*lines, f"{'total':<8}{sum(accounts.values()):>8.1f}"]) + "\\n"


        def initials(name):
            return "".join(word[0] for word in name.split())
        ''',
    "tests/golden/report.txt": "ada        10.50\nbob         3.25\ntotal      13.75\n",
    "tests/test_ledger.py": '''
        import pathlib
        import unittest

        from ledger.interest import compound
        from ledger.report import initials, report

        GOLDEN = pathlib.Path(__file__).parent / "golden"


        class InterestTest(unittest.TestCase):
            def test_one_year(self):
                self.assertAlmostEqual(compound(100, 0.05, 1), 105.0, places=2)

            def test_two_years(self):
                self.assertAlmostEqual(compound(100, 0.05, 2), 110.25, places=2)

            def test_ten_years(self):
                self.assertAlmostEqual(compound(100, 0.05, 10), 162.89, places=2)


        class ReportTest(unittest.TestCase):
            def test_report(self):
                found = report({"bob": 3.25, "ada": 10.5})
                self.assertEqual(found, (GOLDEN / "report.txt").read_text())

            def test_initials(self):
                self.assertEqual(initials("Ada Lovelace"), "AL")

            def test_report_ends_with_a_line(self):
                self.assertTrue(report({}).endswith("\\n"))
        ''',
}, {"ledger/interest.py": ("(1 + rate * years)", "(1 + rate) ** years"),
    "ledger/report.py": [("accounts.items()", "sorted(accounts.items())"), (">8.1f", ">8.2f")]},
    "pytest", ("test_two_years", "test_ten_years", "test_report ", "3 failed, 3 passed"),
    ("from ledger.interest import compound; from ledger.report import report",
     "round(compound(200, 0.1, 3), 2) -> 266.2",
     "report({'z': 1, 'a': 2}).split() -> ['a', '2.00', 'z', '1.00', 'total', '3.00']"))
TL, GOLDEN = "tests/test_ledger.py", "tests/golden/report.txt"
INTEREST, REPORT = "ledger/interest.py", "ledger/report.py"
