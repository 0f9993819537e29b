"""The Go projects of the corpus. None needs a module from elsewhere."""

from cases import PROBE_TOKEN, Project, edited, text


def go_text(body: str) -> str:
    """Returns the text of a Go file, which indents with tabs."""
    lines = []
    for line in text(body).splitlines():
        stripped = line.lstrip(" ")
        lines.append("\t" * ((len(line) - len(stripped)) // 4) + stripped)
    return "\n".join(lines) + "\n"


def project(name, files, fixes, red, probe, command="go test ./...", **settings):
    """The probe is the packages to import, then conditions."""
    imports, *checks = probe
    packages = "".join(f'\t"{path}"\n' for path in imports.split())
    conditions = "".join(f"\tif !({check}) {{\n\t\tpanic(\"not done\")\n\t}}\n"
                         for check in checks)
    program = (f"package main\n\nimport (\n{packages})\n\nfunc main() {{\n{conditions}"
               f'\tprintln("{PROBE_TOKEN}")\n}}\n')
    files = {".gitignore": "*.test\n*.out\n", "go.mod": f"module example.org/{name}\n\ngo 1.24\n"
             } | {path: go_text(body) if path.endswith(".go") else text(body)
                  for path, body in files.items()}
    return Project("go", name, files, edited(files, fixes), command, red, program, **settings)


CALC = project("calc", {
    "calc.go": """
        // Package calc has arithmetic on integers.
        package calc

        // Add returns the sum.
        func Add(a, b int) int {
            return a - b
        }

        // Mean returns the arithmetic mean, and 0 for no values.
        func Mean(values ...int) float64 {
            sum := 0
            for _, value := range values {
                sum += value
            }
            return float64(sum / max(len(values), 1))
        }

        // Clamp returns the nearest value in the range.
        func Clamp(value, low, high int) int {
            return max(low, min(value, high))
        }
        """,
    "calc_test.go": """
        package calc

        import "testing"

        func TestAdd(t *testing.T) {
            if got := Add(2, 3); got != 5 {
                t.Errorf("Add(2, 3) = %d", got)
            }
        }

        func TestAddNegative(t *testing.T) {
            if got := Add(-2, -3); got != -5 {
                t.Errorf("Add(-2, -3) = %d", got)
            }
        }

        func TestClamp(t *testing.T) {
            if got := Clamp(5, 0, 3); got != 3 {
                t.Errorf("Clamp(5, 0, 3) = %d", got)
            }
        }
        """,
    "mean_test.go": """
        package calc

        import "testing"

        func TestMean(t *testing.T) {
            if got := Mean(1, 2); got != 1.5 {
                t.Errorf("Mean(1, 2) = %v", got)
            }
        }

        func TestMeanOfNothing(t *testing.T) {
            if got := Mean(); got != 0 {
                t.Errorf("Mean() = %v", got)
            }
        }
        """,
}, {"calc.go": [("return a - b", "return a + b"),
                ("float64(sum / max(len(values), 1))",
                 "float64(sum) / float64(max(len(values), 1))")]},
    ("--- FAIL: TestAdd ", "--- FAIL: TestAddNegative", "--- FAIL: TestMean "),
    ("example.org/calc", "calc.Add(17, 25) == 42", "calc.Mean(1, 4) == 2.5"))
C, T, M = "calc.go", "calc_test.go", "mean_test.go"

TEXT = project("text", {
    "slug/slug.go": """
        // Package slug makes names for addresses.
        package slug

        import "strings"

        // Make returns the lower-case words of the title, joined with hyphens.
        func Make(title string) string {
            return strings.ReplaceAll(strings.ToLower(title), " ", "-")
        }
        """,
    "slug/slug_test.go": """
        package slug_test

        import (
            "testing"

            "example.org/text/slug"
        )

        func TestMake(t *testing.T) {
            tests := []struct{ name, title, want string }{
                {"plain", "Plain", "plain"},
                {"two", "two words", "two-words"},
                {"many", "many   spaces", "many-spaces"},
                {"end", "The end!", "the-end"},
            }
            for _, tt := range tests {
                t.Run(tt.name, func(t *testing.T) {
                    if got := slug.Make(tt.title); got != tt.want {
                        t.Fatalf("got %q, want %q", got, tt.want)
                    }
                })
            }
        }
        """,
    "wrap/wrap.go": """
        // Package wrap breaks texts into lines.
        package wrap

        import "strings"

        // Lines returns lines of the width. Only words that are wider exceed it.
        func Lines(text string, width int) string {
            lines := []string{""}
            for _, word := range strings.Fields(text) {
                last := len(lines) - 1
                if len(lines[last])+len(word) > width {
                    lines = append(lines, word)
                } else {
                    lines[last] = strings.TrimSpace(lines[last] + " " + word)
                }
            }
            return strings.Join(lines, "\\n") + "\\n"
        }
        """,
    "wrap/wrap_test.go": """
        package wrap

        import (
            "os"
            "testing"
        )

        func TestShort(t *testing.T) {
            if got := Lines("a b", 10); got != "a b\\n" {
                t.Errorf("got %q", got)
            }
        }

        func TestGolden(t *testing.T) {
            want, err := os.ReadFile("testdata/wrapped.txt")
            if err != nil {
                t.Fatal(err)
            }
            if got := Lines("one two three four five", 6); got != string(want) {
                t.Errorf("got %q, want %q", got, want)
            }
        }
        """,
    "wrap/testdata/wrapped.txt": "one\ntwo\nthree\nfour\nfive\n",
}, {"slug/slug.go": (
        'strings.ReplaceAll(strings.ToLower(title), " ", "-")',
        "strings.Join(strings.FieldsFunc(strings.ToLower(title), func(c rune) bool {\n"
        "\t\treturn (c < 'a' || c > 'z') && (c < '0' || c > '9')\n\t}), \"-\")"),
    "wrap/wrap.go": ("\t\tif len(lines[last])+len(word) > width {",
                     '\t\tif lines[last] != "" && len(lines[last])+1+len(word) > width {')},
    ("--- FAIL: TestMake/many", "--- FAIL: TestMake/end", "--- FAIL: TestGolden"),
    ("example.org/text/slug example.org/text/wrap", 'slug.Make(" Go -- 2? ") == "go-2"',
     'wrap.Lines("xx yyyy z", 6) == "xx\\nyyyy z\\n"'))
S, ST, W, WT = "slug/slug.go", "slug/slug_test.go", "wrap/wrap.go", "wrap/wrap_test.go"
GOLDEN = "wrap/testdata/wrapped.txt"

# The assertions are a module of the repository, and a person wrote the gate.
BANK = project("bank", {
    "go.mod": """
        module example.org/bank

        go 1.24

        require example.org/check v0.0.0

        replace example.org/check => ./third_party/check
        """,
    "Makefile": ".PHONY: test\ntest:\n\tgo test ./...\n",
    "third_party/check/go.mod": "module example.org/check\n\ngo 1.24\n",
    "third_party/check/check.go": """
        // Package check has assertions for tests.
        package check

        import (
            "errors"
            "testing"
        )

        // Equal fails the test if the values differ.
        func Equal[T comparable](t *testing.T, got, want T) {
            t.Helper()
            if got != want {
                t.Errorf("got %v, want %v", got, want)
            }
        }

        // ErrorIs fails the test if the error is another one.
        func ErrorIs(t *testing.T, err, target error) {
            t.Helper()
            if !errors.Is(err, target) {
                t.Errorf("got error %v, want %v", err, target)
            }
        }
        """,
    "account.go": """
        // Package bank has accounts.
        package bank

        import "errors"

        // ErrFunds is the error of an account without funds.
        var ErrFunds = errors.New("not enough funds")

        // ErrAmount is the error of an amount that is not positive.
        var ErrAmount = errors.New("amount is not positive")

        // Account has a balance in cents.
        type Account struct {
            balance int
        }

        // Balance returns the cents of the account.
        func (a *Account) Balance() int {
            return a.balance
        }

        // Deposit adds a positive amount.
        func (a *Account) Deposit(cents int) error {
            a.balance += cents
            return nil
        }

        // Withdraw takes an amount if the account has it.
        func (a *Account) Withdraw(cents int) error {
            a.balance -= cents
            return nil
        }
        """,
    "account_test.go": """
        package bank

        import (
            "os"
            "testing"

            "example.org/check"
        )

        func TestMain(m *testing.M) {
            code := m.Run()
            os.Exit(code)
        }

        func TestNew(t *testing.T) {
            check.Equal(t, new(Account).Balance(), 0)
        }

        func TestDeposit(t *testing.T) {
            account := new(Account)
            check.Equal(t, account.Deposit(50), nil)
            check.Equal(t, account.Balance(), 50)
        }

        func TestDepositOfNothing(t *testing.T) {
            check.ErrorIs(t, new(Account).Deposit(-5), ErrAmount)
        }

        func TestWithdraw(t *testing.T) {
            account := &Account{balance: 30}
            check.ErrorIs(t, account.Withdraw(40), ErrFunds)
            check.Equal(t, account.Balance(), 30)
        }
        """,
}, {"account.go": [
    ("\ta.balance += cents", "\tif cents <= 0 {\n\t\treturn ErrAmount\n\t}\n\ta.balance += cents"),
    ("\ta.balance -= cents", "\tif cents > a.balance {\n\t\treturn ErrFunds\n\t}\n"
                             "\ta.balance -= cents")]},
    ("--- FAIL: TestDepositOfNothing", "--- FAIL: TestWithdraw"),
    ("example.org/bank", "bank.ErrAmount != nil && bank.ErrFunds != nil",
     "new(bank.Account).Deposit(-9) == bank.ErrAmount",
     "new(bank.Account).Withdraw(7) == bank.ErrFunds"),
    "make test", gates="version: 1\nhooks:\n  stop:\n    - name: tests\n      command: make test\n"
                       "      timeout: 5m\n")
A, AT, CHECK = "account.go", "account_test.go", "third_party/check/check.go"
