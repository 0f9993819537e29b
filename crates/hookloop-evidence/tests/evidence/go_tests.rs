//! Tests of Go's `testing` package.

use hookloop_evidence::SourceLanguage;

use crate::{check_assertions, check_names, check_same, tests};

const GO: SourceLanguage = SourceLanguage::Go;

#[test]
fn functions_subtests_and_methods_of_suites_are_tests() {
    let source = r#"package a
import "testing"
func TestMain(m *testing.M) {}
func TestA(t *testing.T) {
	t.Run("one", func(t *testing.T) {
		t.Run("inner", func(t *testing.T) { t.Skip("later") })
		t.Error("x")
	})
	t.Run(name, func(t *testing.T) {})
	t.Run("two", func(t *testing.T) { t.SkipNow() })
}
func Testb(t *testing.T) {}
func FuzzC(f *testing.F) {}
func ExampleD() {
	fmt.Println("x")
	// Output: x
}
func ExampleE() {}
func BenchmarkF(b *testing.B) {}
func (s *Suite) TestG() { s.Equal(1, 2) }
func TestH(t *testing.T) {
	if testing.Short() { t.Skip() }
	t.Run("sub", func(t *testing.T) {})
}
"#;
    check_names(
        GO,
        source,
        &[
            "4 TestA",
            "5 TestA::one",
            "6 TestA::one::inner skip",
            "10 TestA::two skip",
            "13 FuzzC",
            "14 ExampleD",
            "18 ExampleE skip",
            "20 Suite::TestG",
            "21 TestH skip",
            "23 TestH::sub skip",
        ],
    );
}

#[test]
fn conditions_of_failing_calls_are_assertions() {
    let source = r#"package a
func TestA(t *testing.T) {
	if got := f("x", -1); got != 42 {
		t.Errorf("got %d", got)
		t.FailNow()
	}
	assert.Equal(t, "y", g(7))
	for _, c := range []struct{ in, want string }{ {"a", "b"}, {in: "c", want: "d"} } {
		t.Fatal(c)
	}
	m := map[string]int{"one": 1}
}"#;
    check_assertions(
        GO,
        source,
        &[
            ("got := f ( \"x\" , - 1 ) ; got != 42 ; t.Errorf", "\"x\" -1", "42"),
            ("t . FailNow ( )", "", ""),
            ("assert . Equal ( t , \"y\" , g ( 7 ) )", "7", "\"y\""),
            ("{ \"a\" , \"b\" }", "\"a\"", "\"b\""),
            ("{ in : \"c\" , want : \"d\" }", "\"c\"", "\"d\""),
            ("t . Fatal ( c )", "", ""),
        ],
    );
}

#[test]
fn the_output_of_an_example_is_its_assertion() {
    let source = |output: &str| {
        format!("package a\nfunc ExampleA() {{\n\tf()\n\t// Output:\n\t// {output}\n}}")
    };
    let found = tests(GO, &source("a 1"));
    assert_eq!(found[0].assertions[0].outcomes, ["\"a 1\""]);
    check_same(GO, &source("a 1"), &source("a 2"), false);
}

#[test]
fn subtests_count_for_the_text_of_the_test_around_and_not_for_its_assertions() {
    let source = |text: &str| {
        format!(
            "package a\nfunc TestA(t *testing.T) {{ t.Run(\"x\", func(t *testing.T) {{ t.Error({text}) }}) }}"
        )
    };
    check_same(GO, &source("1"), &source("2"), false);
    check_same(GO, &source("1"), &source("1, // x\n"), true);
    let found = tests(GO, &source("1"));
    assert_eq!(found[0].assertions.len(), 0);
    assert_eq!(found[1].assertions.len(), 1);
}
