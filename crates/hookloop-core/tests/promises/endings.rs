//! Promises at the end of the last line after other text, and tags that are not promises.

use hookloop_core::promise::NearMiss::{InText, Misspelt, OtherWord, Quoted, Split};
use hookloop_core::promise::Promise::{Blocked, Complete, Escalate};
use hookloop_core::promise::{LINE_MAX, NEAR_MISSES_MAX, NearMiss, Promise, read};

const COMPLETE: &str = "<promise>COMPLETE</promise>";

#[test]
fn a_promise_that_ends_the_last_line_is_inline() {
    let check = |message: &str, expected: Promise| {
        let found = read(message);
        assert_eq!(found.inline, Some(expected), "{message}");
        assert_eq!(found.alone, [], "{message}");
        assert_eq!(found.counted(true), [expected], "{message}");
        assert_eq!(found.counted(false), [], "{message}");
        assert!(!found.near_misses.is_empty(), "{message}");
    };
    check("Implementation complete. <promise>COMPLETE</promise>", Complete);
    check("Done.\n\n**<promise>COMPLETE</promise>**", Complete);
    check("Done.\n\n- <promise>COMPLETE</promise>\n", Complete);
    check("Done: `<promise>COMPLETE</promise>`.\n\n\n", Complete);
    check("I need a token. <promise>BLOCKED</promise>!\r\n", Blocked);
    check("1. Which encoding?\n   <promise>ESCALATE</promise>", Escalate);
    check("| state | <promise>COMPLETE</promise> |", Complete);
    check("Status: <promise>COMPLETE</promise> ✅", Complete);
    for length in [LINE_MAX - 20, LINE_MAX, LINE_MAX + 10, 9 * LINE_MAX] {
        check(&format!("{}. {COMPLETE}", "x".repeat(length)), Complete);
    }
}

#[test]
fn a_quoted_or_mentioned_promise_is_not_inline() {
    let check = |message: &str| {
        let found = read(message);
        assert_eq!((found.inline, found.counted(true)), (None, vec![]), "{message}");
    };
    check("I will print <promise>COMPLETE</promise> when done");
    check("I will print <promise>COMPLETE</promise>\nwhen done");
    check("I print `<promise>COMPLETE</promise>`.\n\nThe tests still fail.");
    check("```\n<promise>COMPLETE</promise>\n```");
    check("```\n<promise>COMPLETE</promise>");
    check("```\nDone. <promise>COMPLETE</promise>");
    check("> Done. <promise>COMPLETE</promise>");
    check("Text.\n\n    echo <promise>COMPLETE</promise>");
    check("<!-- <promise>COMPLETE</promise> -->");
    check("See <code><promise>COMPLETE</promise></code>");
    check("an open `span\ngoes on <promise>COMPLETE</promise>");
    check(&format!("{COMPLETE}{}", " and".repeat(LINE_MAX)));
    check("");
}

#[test]
fn malformed_promise_tags_are_near_misses() {
    let check = |message: &str, expected: &[NearMiss]| {
        let found = read(message);
        assert_eq!(found.near_misses, expected, "{message}");
        assert_eq!(found.alone, [], "{message}");
    };
    check("Done. <promise>COMPLETE</promise> Bye.", &[InText { promise: Complete }]);
    check("```\n<promise>BLOCKED</promise>\n```", &[Quoted { promise: Blocked }]);
    check("> <promise>COMPLETE</promise>", &[Quoted { promise: Complete }]);
    check("- a\n  <promise>COMPLETE</promise>", &[Quoted { promise: Complete }]);
    check("<promise>complete</promise>", &[Misspelt { promise: Complete }]);
    check("<PROMISE>COMPLETE</PROMISE>", &[Misspelt { promise: Complete }]);
    check("<promise> COMPLETE </promise>", &[Misspelt { promise: Complete }]);
    check("<promise>**ESCALATE**</promise>", &[Misspelt { promise: Escalate }]);
    check("<promis>COMPLETE</promis>", &[Misspelt { promise: Complete }]);
    check("<promise>COMPLETE", &[Misspelt { promise: Complete }]);
    check("<promise>DONE</promise>", &[OtherWord { word: "DONE".to_owned() }]);
    check("<promise>\u{1b}[2J</promise>", &[OtherWord { word: "…".to_owned() }]);
    check("<promise>\nCOMPLETE\n</promise>", &[Split]);
    check("It returns Promise<string>, or an Array<Promise<void>>.", &[]);
    check("I promise that it is COMPLETE.", &[]);
    check("<p>COMPLETE</p>", &[]);
}

#[test]
fn near_misses_are_limited_and_without_duplicates() {
    let mut message = "Done. <promise>COMPLETE</promise> and so on\n".repeat(1_000);
    assert_eq!(read(&message).near_misses, [InText { promise: Complete }]);
    for word in 0..50 {
        message.push_str(&format!("<promise>W{word}</promise>\n"));
    }
    assert_eq!(read(&message).near_misses.len(), NEAR_MISSES_MAX);
}

#[test]
fn with_gates_an_inline_promise_counts_beside_other_promises() {
    let found = read("<promise>BLOCKED</promise>\n\nMore: <promise>COMPLETE</promise>");
    assert_eq!(found.counted(false), [Blocked]);
    assert_eq!(found.counted(true), [Blocked, Complete]);
    let twice = read("<promise>COMPLETE</promise>\n\nSo: <promise>COMPLETE</promise>");
    assert_eq!(twice.counted(true), [Complete]);
}
