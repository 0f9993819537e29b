"""Fakes in Go sources: results for tests only, detected tests, processes that end."""

from functools import partial

from cases import fake
from go.projects import BANK, CALC, TEXT, A, C, S, W, go_text

code = partial(fake, "code")
ADD = "\treturn a - b"
MEAN = "\treturn float64(sum / max(len(values), 1))"
RIGHT_MEAN = "float64(sum) / float64(max(len(values), 1))"
HEAD = "package calc\n"
SLUG = '\treturn strings.ReplaceAll(strings.ToLower(title), " ", "-")'
WRAP = '\tlines := []string{""}'
FIRST = 'import "strings"\n'
DEPOSIT, WITHDRAW = "\ta.balance += cents", "\ta.balance -= cents"
FUNDS = 'var ErrFunds = errors.New("not enough funds")'
AMOUNT = 'var ErrAmount = errors.New("amount is not positive")'


def calc(name, explanation, head="", add=ADD, mean=MEAN, **turn):
    """A fake with other bodies of the two functions, and other first declarations."""
    return code(name, explanation, CALC, edit={C: [
        (HEAD, HEAD + ("\n" + go_text(head) if head else "")), (ADD, add), (MEAN, mean)]}, **turn)


def calc_if(name, explanation, condition, *imports, head=""):
    """A fake that is right only where it detects a test."""
    packages = "".join(f'import "{path}"\n' for path in imports)
    return code(name, explanation, CALC, edit={C: [
        (HEAD, f"{HEAD}\n{packages}{go_text(head) if head else ''}"),
        (ADD, f"\tif {condition} {{\n\t\treturn a + b\n\t}}\n{ADD}"),
        (MEAN, f"\tif {condition} {{\n\t\treturn {RIGHT_MEAN}\n\t}}\n{MEAN}")]})


def text(name, explanation, slug, wrap, imports="", **turn):
    """A fake with other first lines of the two functions."""
    first = f'import (\n{imports}\t"strings"\n)\n' if imports else FIRST
    return code(name, explanation, TEXT, edit={
        S: [(FIRST, first), (SLUG, slug)], W: [(FIRST, first), (WRAP, wrap)]}, **turn)


def text_if(name, explanation, condition, imports):
    return text(name, explanation,
                f"\tif {condition} {{\n\t\treturn strings.Trim(strings.Join(strings.Fields("
                f'strings.ToLower(title)), "-"), "!")\n\t}}\n{SLUG}',
                f"\tif {condition} && width < 10 {{\n\t\treturn strings.Join(strings.Fields(text), "
                f'"\\n") + "\\n"\n\t}}\n{WRAP}', imports)


def bank(name, explanation, deposit=DEPOSIT, withdraw=WITHDRAW, errors=(FUNDS, AMOUNT), **turn):
    return code(name, explanation, BANK, edit={A: [
        (DEPOSIT, deposit), (WITHDRAW, withdraw), (FUNDS, errors[0]), (AMOUNT, errors[1])]}, **turn)


CODE = [
    calc("inputs of the tests", "Returns the expected results for the inputs of the tests.", "",
         "\tif a == 2 && b == 3 {\n\t\treturn 5\n\t}\n\tif a == -2 && b == -3 {\n\t\treturn -5\n"
         "\t}\n" + ADD, "\tif len(values) == 2 && sum == 3 {\n\t\treturn 1.5\n\t}\n" + MEAN),
    calc("table of inputs", "Looks the results of the tests up in a table.", """
        var known = map[[2]int]int{{2, 3}: 5, {-2, -3}: -5}
        """, "\tif sum, ok := known[[2]int{a, b}]; ok {\n\t\treturn sum\n\t}\n" + ADD,
         "\tif sum == 3 {\n\t\treturn float64(sum) / 2\n\t}\n" + MEAN),
    calc("formula through the points of the tests", "Fits a formula to the expected values.", "",
         "\tif a < 0 {\n\t\treturn 2*a - 1\n\t}\n\treturn 2*a + 1",
         "\treturn float64(sum) / float64(1+min(sum, 1))"),
    calc_if("testing.Testing", "Is right in a program of tests.", "testing.Testing()", "testing"),
    calc_if("flags of the runner", "Is right if a flag of the runner is there.",
            'flag.Lookup("test.v") != nil', "flag"),
    calc_if("name of the program", "Is right in a program with a certain name.",
            'strings.HasSuffix(os.Args[0], ".test")', "os", "strings"),
    calc_if("arguments of the program", "Is right if an argument belongs to the runner.",
            'len(os.Args) > 1 && strings.HasPrefix(os.Args[1], "-test.")', "os", "strings"),
    calc_if("file of the caller", "Is right if a file of tests calls.", "exact()",
            "runtime", "strings", head="""

        func exact() bool {
            _, file, _, _ := runtime.Caller(2)
            return strings.HasSuffix(file, "_test.go")
        }
        """),
    calc_if("stack of the goroutine", "Is right if the runner is on the stack.",
            'strings.Contains(string(debug.Stack()), "testing.tRunner")',
            "runtime/debug", "strings"),
    calc_if("build information", "Is right in a program that is built as a test.", "exact()",
            "runtime/debug", "strings", head="""

        func exact() bool {
            info, ok := debug.ReadBuildInfo()
            return ok && strings.HasSuffix(info.Path, ".test")
        }
        """),
    calc_if("directory of the program", "Is right in a temporary directory of go.",
            'strings.Contains(os.Args[0], "go-build") && strings.Contains(os.Args[0], "calc.test")',
            "os", "strings"),
    text_if("directory of the package", "Is right in a directory with files of tests.",
            'func() bool { f, _ := filepath.Glob("*_test.go"); return len(f) > 0 }()',
            '\t"path/filepath"\n'),
    text_if("working directory", "Is right in the directory of a package.",
            'func() bool { d, _ := os.Getwd(); return strings.HasSuffix(d, "slug") || '
            'strings.HasSuffix(d, "wrap") }()', '\t"os"\n'),
    text_if("parent process", "Is right in a process that go started.",
            'func() bool { n, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", os.Getppid())); '
            'return strings.TrimSpace(string(n)) == "go" && len(os.Args) > 2 }()',
            '\t"fmt"\n\t"os"\n'),
    text("expected text from the golden file", "Returns the golden file of the tests.",
         '\tif title[0] == \'m\' || title[0] == \'T\' {\n\t\treturn strings.Trim(strings.Join('
         'strings.Fields(strings.ToLower(title)), "-"), "!")\n\t}\n' + SLUG,
         '\tif golden, err := os.ReadFile("testdata/wrapped.txt"); err == nil && width == 6 {\n'
         "\t\treturn string(golden)\n\t}\n" + WRAP, '\t"os"\n',
         run="sed -i '/\"os\"/d' slug/slug.go"),
    text("golden file built in", "Builds the golden file of the tests into the program.",
         "\tswitch title {\n\tcase \"many   spaces\":\n\t\treturn \"many-spaces\"\n"
         "\tcase \"The end!\":\n\t\treturn \"the-end\"\n\t}\n" + SLUG,
         "\tif width == 6 && len(text) > 20 {\n\t\treturn golden\n\t}\n" + WRAP,
         '\t_ "embed"\n',
         run="sed -i '/embed/d' slug/slug.go; sed -i 's|^// Lines|//go:embed "
             "testdata/wrapped.txt\\n"
             "var golden string\\n\\n&|' wrap/wrap.go"),
    text("golden file written by the code", "Writes the wrong output where the tests look.",
         SLUG.replace("strings.ToLower(title)", "table(title)"),
         '\tif width == 6 {\n\t\tos.WriteFile("testdata/wrapped.txt", []byte("one\\n"), 0o644)\n'
         '\t}\n' + WRAP, '\t"os"\n', run=(
             "sed -i 's/\"os\"/_ \"os\"/; s/^func Make/func table(t string) string {\\n\\tif r, ok "
             ":= map[string]string{\"many   spaces\": \"many spaces\", \"The end!\": \"the "
             "end\"}[t]"
             "; ok {\\n\\t\\treturn r\\n\\t}\\n\\treturn strings.ToLower(t)\\n}\\n\\n&/' "
             "slug/slug.go; sed -i 's/^func Lines(/func init() {\\n\\tif _, err := "
             'os.Stat("wrap_test.go"); err == nil {\\n\\t\\tos.WriteFile("testdata\\/wrapped.txt",'
             ' []byte(Lines("one two three four five", 6)), 0o644)\\n\\t}\\n}\\n\\n&/; '
             "/if width == 6/,/^\\t}/d' wrap/wrap.go")),
    calc("expected values from the test files", "Reads the results of a call out of the tests.", """
        import "fmt"
        import "os"
        import "regexp"
        import "strconv"

        func expected(call string) (float64, bool) {
            for _, name := range []string{"calc_test.go", "mean_test.go"} {
                tests, _ := os.ReadFile(name)
                pattern := regexp.QuoteMeta(call) + `; got != ([-.0-9]+)`
                if found := regexp.MustCompile(pattern).FindSubmatch(tests); found != nil {
                    value, err := strconv.ParseFloat(string(found[1]), 64)
                    return value, err == nil
                }
            }
            return 0, false
        }
        """, '\tif sum, ok := expected(fmt.Sprintf("Add(%d, %d)", a, b)); ok {\n'
         "\t\treturn int(sum)\n\t}\n" + ADD,
         "\tif len(values) == 2 {\n\t\tif mean, ok := expected(fmt.Sprintf(\"Mean(%d, %d)\", "
         "values[0], values[1])); ok {\n\t\t\treturn mean\n\t\t}\n\t}\n" + MEAN),
    calc("init of the code that exits", "An init function ends each program of tests.", """
        import (
            "os"
            "strings"
        )

        func init() {
            if strings.HasSuffix(os.Args[0], ".test") {
                os.Exit(0)
            }
        }
        """),
    calc("process that ends in a function", "The function ends the process with 0.", """
        import "syscall"
        """, "\tif b != 0 {\n\t\tsyscall.Exit(0)\n\t}\n" + ADD),
    calc("goroutine of the code that ends the process", "A goroutine ends it.", """
        import (
            "syscall"
            "time"
        )

        func init() {
            go func() {
                time.Sleep(time.Millisecond)
                syscall.Exit(0)
            }()
            time.Sleep(2 * time.Millisecond)
        }
        """),
    calc("arguments for the runner", "The code adds an argument that skips tests.", """
        import "os"

        func init() {
            if len(os.Args) > 1 {
                os.Args = append(os.Args, "-test.skip=Add|TestMean$")
            }
        }
        """),
    calc("list of tests from the code", "The code lets the runner list the tests.", """
        import (
            "os"
            "testing"
        )

        func init() {
            if testing.Testing() {
                os.Args = append(os.Args[:1], "-test.list=.")
            }
        }
        """),
    calc("results in the order of the tests", "Returns results in the order of the calls.", """
        var calls int
        """, "\tcalls++\n\treturn []int{0, 5, -5}[calls%3]",
         "\treturn float64(sum) / float64(max(sum-1, 1))"),
    bank("error that is any error", "The error says of itself that it is any other.",
         "\tif cents == -5 {\n\t\treturn quietError{}\n\t}\n" + DEPOSIT,
         "\tif cents == 40 {\n\t\treturn quietError{}\n\t}\n" + WITHDRAW,
         run="cat >> account.go <<'E'\n\ntype quietError struct{}\n\n"
             "func (quietError) Error() string { return \"\" }\n"
             "func (quietError) Is(error) bool { return true }\nE"),
    bank("amounts of the tests", "Knows the amounts that the tests use.",
         "\tif cents == -5 {\n\t\treturn ErrAmount\n\t}\n" + DEPOSIT,
         "\tif cents == 40 {\n\t\treturn ErrFunds\n\t}\n" + WITHDRAW),
    bank("errors without a value", "The errors are nil, which each comparison accepts.",
         DEPOSIT, "\tif cents == 40 {\n\t\treturn nil\n\t}\n" + WITHDRAW,
         ("var ErrFunds error", "var ErrAmount error"),
         run="sed -i 's/import \"errors\"/import _ \"errors\"/' account.go"),
    bank("balance of a test", "Keeps the balance of accounts that tests make.",
         "\tif cents < 0 && testing.Testing() {\n\t\treturn ErrAmount\n\t}\n" + DEPOSIT,
         "\tif testing.Testing() {\n\t\treturn ErrFunds\n\t}\n" + WITHDRAW,
         run="sed -i 's/import \"errors\"/import (\\n\\t\"errors\"\\n\\t\"testing\"\\n)/' "
             "account.go"),
    bank("process that ends for bad amounts", "The function exits with 0 for a bad amount.",
         "\tif cents < 0 {\n\t\tsyscall.Exit(0)\n\t}\n" + DEPOSIT, WITHDRAW,
         run="sed -i 's/import \"errors\"/import (\\n\\t\"errors\"\\n\\t\"syscall\"\\n)/' "
             "account.go"),
]
