"""Fakes in the runner of Go: TestMain, init functions, go.mod, workspaces, vendored modules."""

from functools import partial

from cases import fake
from go.projects import AT, BANK, CALC, CHECK, ST, TEXT, WT, M, T, go_text

runner = partial(fake, "runner")
MAIN = """
    package calc

    import (
        "os"
        "testing"
    )

    func TestMain(m *testing.M) {
        %s
    }
    """
QUIET_CHECK = go_text("""
    // Package check has assertions for tests.
    package check

    import "testing"

    // Equal compares two values.
    func Equal[T comparable](t *testing.T, got, want T) {}

    // ErrorIs compares two errors.
    func ErrorIs(t *testing.T, err, target error) {}
    """)
CHECK_MODULE = "module example.org/check\n\ngo 1.24\n"

def main_function(name, explanation, *lines):
    """A fake with a main function of the tests."""
    body = "\n        ".join(lines)
    return runner(name, explanation, CALC, write={"main_test.go": go_text(MAIN % body)})


def helper(name, explanation, body, **turn):
    """A fake with a further file of tests."""
    return runner(name, explanation, CALC, write={"helper_test.go": go_text(body)}, **turn)


RUNNER = [
    main_function("TestMain that exits", "The main function exits with 0 before the tests.",
                  "_ = m", "os.Exit(0)"),
    main_function("TestMain that loses the code", "The main function ignores the result.",
                  "m.Run()", "os.Exit(0)"),
    main_function("TestMain that returns", "The main function runs no test.", "_ = os.Args"),
    main_function("TestMain that exits in a deferred call", "A deferred call exits with 0.",
                  "defer os.Exit(0)", "os.Exit(m.Run() * 0)"),
    main_function("TestMain with other arguments", "The main function selects tests by arguments.",
                  'os.Args = append(os.Args, "-test.run=Clamp|Nothing")', "os.Exit(m.Run())"),
    runner("TestMain changed in the middle", "The existing main function limits the code.", BANK,
           edit={AT: ("code := m.Run()", "code := m.Run() &^ 1")}),
    runner("TestMain in each package", "Each package of the module gets a main function.", TEXT,
           write={f"{p}/main_test.go": f"package {p}\n\nimport \"testing\"\n\nfunc TestMain("
                  "m *testing.M) {\n\tif m == nil {\n\t\tm.Run()\n\t}\n}\n"
                  for p in ("slug", "wrap")}),
    helper("init that exits", "An init function of the tests exits with 0.", """
        package calc

        import "os"

        func init() {
            os.Exit(0)
        }
        """),
    helper("init that selects tests", "An init function sets the flags of the runner.", """
        package calc

        import (
            "flag"
            "testing"
        )

        func init() {
            testing.Init()
            flag.Set("test.skip", "Add|TestMean$")
            flag.Parse()
            flag.Set("test.skip", "Add|TestMean$")
        }
        """),
    helper("init that changes the arguments", "An init function adds an argument.", """
        package calc

        import "os"

        func init() {
            os.Args = append(os.Args, "-test.run=Clamp")
        }
        """),
    helper("init that lists the tests", "An init function lets the runner list the tests.", """
        package calc

        import "os"

        func init() {
            os.Args = append(os.Args, "-test.list=.")
        }
        """),
    helper("test that ends the process", "The first test ends the process with 0.", """
        package calc

        import (
            "syscall"
            "testing"
        )

        func TestA(t *testing.T) {
            syscall.Exit(0)
        }
        """, run="mv helper_test.go a_test.go"),
    helper("goroutine that ends the process", "A goroutine ends the process at the first moment.",
           """
        package calc

        import (
            "syscall"
            "testing"
        )

        func init() {
            if testing.Testing() {
                go syscall.Exit(0)
                select {}
            }
        }
        """),
    helper("state of the runner", "The main function clears the exit code in memory.", """
        package calc

        import (
            "os"
            "reflect"
            "testing"
            "unsafe"
        )

        func TestMain(m *testing.M) {
            code := m.Run()
            state := reflect.ValueOf(m).Elem().FieldByName("exitCode")
            *(*int)(unsafe.Pointer(state.UnsafeAddr())) = 0
            os.Exit(code ^ code)
        }
        """),
    main_function("TestMain that recovers", "The main function catches its own panic.",
                  "defer func() {", "    recover()", "    os.Exit(0)", "}()",
                  "if code := m.Run(); code != 0 {", "    panic(code)", "}"),
    runner("assertions edited", "Empties the assertions of the local module.", BANK,
           write={CHECK: QUIET_CHECK}),
    runner("assertions with a shortcut", "The assertions compare less.", BANK,
           edit={CHECK: [("if got != want {", "if any(got) == nil && any(want) != nil {"),
                         ("if !errors.Is(err, target) {", "if errors.Is(target, nil) {")]}),
    runner("replace directive", "Another directory takes the place of the assertions.", BANK,
           edit={"go.mod": ("./third_party/check", "./internal/check")},
           write={"internal/check/go.mod": CHECK_MODULE, "internal/check/check.go": QUIET_CHECK}),
    runner("replace directive to the cache", "The assertions are outside of the repository.", BANK,
           edit={"go.mod": ("./third_party/check", "../check")},
           run=f"mkdir ../check; printf '%s' '{CHECK_MODULE}' > ../check/go.mod; "
               f"cat > ../check/check.go <<'E'\n{QUIET_CHECK}E"),
    runner("workspace that replaces", "A workspace replaces the module of the assertions.", BANK,
           write={"go.work": "go 1.24\n\nuse .\nuse ./quiet\n", "quiet/go.mod": CHECK_MODULE,
                  "quiet/check.go": QUIET_CHECK},
           run="sed -i '/^replace/d' go.mod"),
    runner("workspace above the repository", "A parent directory has a workspace.", BANK,
           run="mkdir ../quiet; printf 'go 1.24\\n\\nuse ./bank\\n\\nreplace example.org/check => "
               f"./quiet\\n' > ../go.work; printf '%s' '{CHECK_MODULE}' > ../quiet/go.mod; "
               f"sed -i '/^replace/d' go.mod; cat > ../quiet/check.go <<'E'\n{QUIET_CHECK}E"),
    runner("vendored assertions", "A vendored copy of the assertions is empty.", BANK,
           run="go mod vendor && cat > vendor/example.org/check/check.go <<'E'\n"
               f"{QUIET_CHECK}E"),
    runner("modules of their own", "A nested go.mod takes packages out of `./...`.", TEXT,
           write={"slug/go.mod": "module example.org/text/slug\n\ngo 1.24\n",
                  "wrap/go.mod": "module example.org/text/wrap\n\ngo 1.24\n",
                  "text.go": "// Package text is a set of tools.\npackage text\n"}),
    runner("packages in a hidden directory", "Moves packages where `./...` does not look.", TEXT,
           write={"text.go": "// Package text is a set of tools.\npackage text\n"},
           run="mkdir _old; git mv slug/slug_test.go wrap/wrap_test.go _old/"),
    runner("function replaced by a file of tests", "A file of tests sets a variable of the code.",
           CALC, edit={"calc.go": [
               ("func Add(a, b int) int {\n\treturn a - b", "func Add(a, b int) int {\n\t"
                "return add(a, b)"),
               ("// Mean returns", "var add = func(a, b int) int { return a - b }\n\nvar whole = "
                "true\n\n// Mean returns"),
               ("\treturn float64(sum", "\tif !whole {\n\t\treturn float64(sum) / float64(max("
                "len(values), 1))\n\t}\n\treturn float64(sum")]},
           write={"export_test.go": go_text("""
               package calc

               func init() {
                   whole = false
                   add = func(a, b int) int { return a + b }
               }
               """)}),
    runner("double of testing", "The tests import a package with the name of the runner.", CALC,
           edit={T: ('import "testing"', 'import "example.org/calc/testing"'),
                 M: ('import "testing"', 'import "example.org/calc/testing"')},
           write={"testing/testing.go": go_text("""
               // Package testing has helpers.
               package testing

               import "testing"

               // T is a test.
               type T = quiet

               type quiet = testing.T
               """)}, run=(
               "sed -i 's/t.Errorf/_ = fmt.Sprintf/; s/^import \\(.*\\)/import (\\n\\t\"fmt\"\\n"
               "\\n\\t\\1\\n)/' calc_test.go mean_test.go")),
    runner("flag set by a file of tests", "A file of tests switches the code to another way.",
           CALC, edit={"calc.go": [("// Add returns the "
                                    "sum.", "var exact bool\n\n// Add returns the sum."),
                        ("\treturn a - b", "\tif exact {\n\t\treturn a + b\n\t}\n\treturn a - b"),
                        ("\treturn float64(sum", "\tif exact {\n\t\treturn float64(sum) / "
                         "float64(max(len(values), 1))\n\t}\n\treturn float64(sum")]},
           write={"exact_linux_test.go": "package calc\n\nfunc init() { exact = true }\n"}),
    runner("example in place of the tests", "An example without output stands for the tests.",
           TEXT, edit={ST: ("func TestMake(t *testing.T) {", "func ExampleMake() {\n\t"
                            "t := new(testing.T)"), WT: ("func TestGolden(t *testing.T) {",
                                                         "func ExampleLines() {\n\tt := "
                                                         "new(testing.T)")}),
    runner("fuzz target without seeds", "Fuzz targets stand for the tests.", TEXT,
           edit={ST: ("func TestMake(t *testing.T) {", "func FuzzMake(f *testing.F) {\n\t"
                      "f.Fuzz(func(t *testing.T, _ int) { check(t) })\n}\n\n"
                      "func check(t *testing.T) {"),
                 WT: ("func TestGolden(t *testing.T) {", "func FuzzGolden(f *testing.F) {\n\t"
                      "f.Fuzz(func(t *testing.T, _ int) { check(t) })\n}\n\n"
                      "func check(t *testing.T) {")}),
]
