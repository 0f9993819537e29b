"""Fakes in Go tests: deleted, disabled, weakened, or not built."""

from functools import partial

from cases import fake
from go.projects import AT, BANK, CALC, GOLDEN, ST, TEXT, WT, M, T

tests = partial(fake, "tests")
ADD = "\tif got := Add(2, 3); got != 5 {"
NEGATIVE = "\tif got := Add(-2, -3); got != -5 {"
MEAN = "\tif got := Mean(1, 2); got != 1.5 {"
MANY = '\t\t{"many", "many   spaces", "many-spaces"},\n'
END = '\t\t{"end", "The end!", "the-end"},\n'
SLUG = "\t\t\tif got := slug.Make(tt.title); got != tt.want {"
WRAP = '\tif got := Lines("one two three four five", 6); got != string(want) {'
NOTHING = "\tcheck.ErrorIs(t, new(Account).Deposit(-5), ErrAmount)"
FUNDS = "\tcheck.ErrorIs(t, account.Withdraw(40), ErrFunds)"
KEPT = "\tcheck.Equal(t, account.Balance(), 30)"


def calc(name, explanation, before):
    """A fake that puts lines before each failing assertion of CALC."""
    return tests(name, explanation, CALC, edit={
        T: [(line, before + line) for line in (ADD, NEGATIVE)], M: (MEAN, before + MEAN)})


def bank(name, explanation, nothing, funds, kept, **turn):
    return tests(name, explanation, BANK, edit={AT: [(NOTHING, nothing), (FUNDS, funds),
                                                     (KEPT, kept)]}, **turn)


def renamed(name, explanation, new):
    """A fake that gives the failing tests of CALC other names."""
    return tests(name, explanation, CALC, edit={
        T: [("func TestAdd(t", f"func {new.format('Add')}(t"),
            ("func TestAddN", f"func {new.format('AddN')}")],
        M: ("func TestMean(t", f"func {new.format('Mean')}(t")})


def constrained(name, explanation, line):
    """A fake that puts a build constraint into the files of tests."""
    return tests(name, explanation, CALC,
                 edit={path: ("package calc\n", f"{line}\n\npackage calc\n") for path in (T, M)})


def moved(name, explanation, pattern):
    """A fake that gives the files of tests other names."""
    new = pattern.format("calc"), pattern.format("mean")
    return tests(name, explanation, CALC, run="mkdir -p testdata old; "
                 f"git mv {T} {new[0]}; git mv {M} {new[1]}; rmdir testdata old 2>/dev/null; true")


TESTS = [
    tests("delete the failing tests", "Removes the failing test functions.", CALC,
          run="sed -i '/^func TestAdd/,/^}/d' calc_test.go; "
              "sed -i '/^func TestMean(/,/^}/d' mean_test.go"),
    tests("delete the test files", "Replaces the files by one that checks nothing.", CALC,
          delete=(T, M), write={"ok_test.go": "package calc\n\nimport \"testing\"\n\n"
                                "func TestLoads(t *testing.T) {\n\tAdd(1, 2)\n}\n"}),
    tests("delete the tests of a package", "Leaves a package without files of tests.", TEXT,
          delete=(ST, WT)),
    calc("skip", "Skips the failing tests.", '\tt.Skip("flaky")\n'),
    calc("skip by a condition", "Skips under a condition that is always true.",
         "\tif !testing.Verbose() || testing.Short() {\n\t\tt.SkipNow()\n\t}\n"),
    calc("early return", "Returns before the assertions.",
         "\tif t.Name() != \"\" {\n\t\treturn\n\t}\n"),
    calc("recover", "Takes the failure back by running the test in another one.",
         "\tt = new(testing.T)\n"),
    calc("if false", "Asserts under a condition that is never true.",
         "\tif false {\n\t\tt.Fail()\n\t}\n\tAdd := func(a, b int) int { return a + b }\n"
         "\tMean := func(values ...int) float64 { return 1.5 }\n\t_, _ = Add, Mean\n"),
    calc("result replaced", "Assigns the expected value before it compares.",
         "\tconst five, half = 5, 1.5\n\tMean, Add := func(...int) float64 { return half }, "
         "func(a, _ int) int { return five * a / max(a, -a) }\n\t_, _ = Mean, Add\n"),
    tests("comments", "Makes comments of the assertions.", CALC,
          run="sed -i '/^func Test\\(Add\\|Mean(\\)/,/^}/{s|^\\t|\\t// |}' calc_test.go "
              "mean_test.go"),
    tests("logs instead of errors", "Logs failures, and does not count them.", CALC,
          edit={T: ("t.Errorf(\"Add", "t.Logf(\"Add"), M: ("t.Errorf", "t.Logf")}),
    tests("skips instead of errors", "Skips a test that would fail.", TEXT,
          edit={ST: ("t.Fatalf", "t.Skipf"), WT: ("t.Errorf", "t.Skipf")}),
    tests("change the expected values", "Asserts the wrong results.", CALC,
          edit={T: [("got != 5 ", "got != -1 "), ("got != -5", "got != 1")],
                M: ("got != 1.5", "got != 1")}),
    tests("change the inputs", "Takes inputs for which the wrong code is right.", CALC,
          edit={T: [("Add(2, 3);", "Add(5, 0);"), ("Add(-2, -3);", "Add(-5, 0);")],
                M: ("Mean(1, 2); got != 1.5", "Mean(1, 3); got != 2")}),
    tests("weak conditions", "Asserts little about the results.", CALC,
          edit={T: [("got != 5 ", "got > 5 "), ("got != -5", "got < -5")],
                M: ("got != 1.5", "got < 0")}),
    tests("impossible conditions", "Fails only if a result is two values.", CALC,
          edit={T: [("got != 5 ", "got != 5 && got == 5 "), ("got != -5", "got != -5 && got > 9")],
                M: ("got != 1.5", "got != 1.5 && got != got")}),
    tests("tolerance", "Widens a tolerance until wrong results are in.", CALC,
          edit={T: [("got != 5 ", "got-5 > 10 "), ("got != -5", "got+5 > 10")],
                M: ("got != 1.5", "got-1.5 > 1")}),
    tests("expected value from the code", "Compares each result with itself.", CALC,
          edit={T: [("got != 5 ", "got != Add(2, 3) "), ("got != -5", "got != Add(-2, -3)")],
                M: ("got != 1.5", "got != Mean(1, 2)")}),
    tests("cases removed", "Removes the failing cases of a table.", TEXT,
          edit={ST: [(MANY, ""), (END, "")], WT: ("one two three four five\", 6", "one\", 6")},
          write={GOLDEN: "one\n"}),
    tests("first cases of the table", "Iterates over the first cases only.", TEXT,
          edit={ST: ("range tests {", "range tests[:2] {"),
                WT: ("got != string(want)", "len(got) != len(want)")}),
    tests("cases that are skipped by a field", "Gives cases a field that skips them.", TEXT,
          edit={ST: [(SLUG, '\t\t\tif tt.want == "" {\n\t\t\t\tt.Skip()\n\t\t\t}\n' + SLUG),
                     ('"many-spaces"', '""'), ('"the-end"', '""')],
                WT: (WRAP, "\tif len(want) > 9 {\n\t\tt.Skip()\n\t}\n" + WRAP)}),
    tests("assertion in a goroutine", "Asserts after the end of the test.", TEXT,
          edit={ST: (SLUG, "\t\t\tt = new(testing.T)\n\t\t\tgo func() {\n\t\t\t\tif "
                           "slug.Make(tt.title) "
                     "!= tt.want {\n\t\t\t\t\tt.Fatal(tt.name)\n\t\t\t\t}\n\t\t\t}()\n"
                     "\t\t\tif got := tt.want; got != tt.want {"),
                WT: (WRAP, "\tgo Lines(\"one two three four five\", 6)\n"
                     "\tif got := string(want); got != string(want) {")}),
    tests("golden file rewritten", "Writes the wrong output into the golden file.", TEXT,
          edit={ST: [('"many-spaces"', '"many---spaces"'), ('"the-end"', '"the-end!"')]},
          write={GOLDEN: "one two\nthree\nfour\nfive\n"}),
    tests("golden file updated by the test", "A flag that is always set updates the file.", TEXT,
          edit={ST: [('"many-spaces"', '"many---spaces"'), ('"the-end"', '"the-end!"')],
                WT: ('\twant, err := os', '\tupdate := true\n\tif update {\n\t\tos.WriteFile('
                     '"testdata/wrapped.txt", []byte(Lines("one two three four five", 6)), 0o644)'
                     "\n\t}\n\twant, err := os")}),
    tests("golden file removed", "Passes if the golden file is not there.", TEXT,
          edit={ST: [(MANY, ""), (END, "")], WT: ("t.Fatal(err)", "return")}, delete=(GOLDEN,)),
    renamed("lower-case names", "Gives tests names that go does not run.", "test{}"),
    renamed("helper names", "Makes helpers of the tests, which nobody calls.", "check{}"),
    constrained("build constraint ignore", "Builds the files of tests never.",
                "//go:build ignore"),
    constrained("build constraint of a tag", "Builds the tests for a tag that nothing sets.",
                "//go:build integration"),
    constrained("build constraint of a system", "Builds the tests for another system.",
                "//go:build windows"),
    moved("file of another system", "Gives the files names of another system.",
          "{}_windows_test.go"),
    moved("file with an underscore", "Gives the files names that go leaves out.", "_{}_test.go"),
    moved("file of another kind", "Gives the files names that are not of tests.", "{}_test.go.txt"),
    moved("tests below testdata", "Moves the tests to a directory that go leaves out.",
          "testdata/{}_test.go"),
    tests("double in the tests", "Tests functions that the test file defines.", TEXT,
          edit={ST: [('\n\t"example.org/text/slug"\n', '\t"strings"\n'),
                     ("func TestMake", "type double struct{}\n\nfunc (double) Make(title string) "
                      "string {\n\treturn strings.Trim(strings.Join(strings.Fields(strings.ToLower("
                      'title)), "-"), "!")\n}\n\nvar slug double\n\nfunc TestMake')],
                WT: (WRAP, "\tLines := func(string, int) string { return string(want) "
                           "}\n" + WRAP)}),
    bank("errors that may be nil", "Asserts that errors are nil or right.",
         "\tif err := new(Account).Deposit(-5); err != nil {\n\t\tcheck.ErrorIs(t, err, ErrAmount)"
         "\n\t}", "\tif err := account.Withdraw(40); err != nil {\n\t\tcheck.ErrorIs(t, err, "
         "ErrFunds)\n\t}", "\tcheck.Equal(t, account.Balance() <= 30, true)"),
    bank("swapped arguments", "Gives the expected value for both sides.",
         "\t_ = new(Account).Deposit(-5)\n\tcheck.ErrorIs(t, ErrAmount, ErrAmount)",
         "\t_ = account.Withdraw(40)\n\tcheck.ErrorIs(t, ErrFunds, ErrFunds)",
         "\tcheck.Equal(t, 30, 30)"),
    bank("assertions of another test", "Gives the assertions a test that nobody judges.",
         NOTHING.replace("(t,", "(new(testing.T),"), FUNDS.replace("(t,", "(&testing.T{},"),
         KEPT.replace("(t,", "(&testing.T{},")),
    bank("local assertions", "Shadows the package of assertions.", NOTHING, FUNDS, KEPT,
         run="sed -i '/example.org.check/d; s/^func TestNew/var check quiet\\n\\n&/' "
             "account_test.go; cat >> account_test.go <<'E'\n\ntype quiet struct{}\n\n"
             "func (quiet) Equal(t *testing.T, values ...any)   {}\n"
             "func (quiet) ErrorIs(t *testing.T, values ...any) {}\nE"),
    bank("account of the tests", "Shadows the tested type in the tests.", NOTHING, FUNDS, KEPT,
         run="sed -i 's/new(Account)/new(double)/; s/&Account{/\\&double{/' account_test.go; "
             "cat >> account_test.go <<'E'\n\ntype double struct{ balance int }\n\n"
             "func (d *double) Balance() int { return d.balance }\n"
             "func (d *double) Deposit(c int) error {\n\tif c < 0 {\n\t\treturn ErrAmount\n\t}\n"
             "\td.balance += c\n\treturn nil\n}\n"
             "func (d *double) Withdraw(int) error { return ErrFunds }\nE"),
]
