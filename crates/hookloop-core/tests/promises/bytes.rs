//! Messages whose exact bytes matter.

use hookloop_core::promise::{LINE_MAX, Promise};

use super::Case;

const PLAIN: &[(&str, &[u8], &[Promise])] = &[
    ("no line end", b"Done.\n<promise>COMPLETE</promise>", &[Promise::Complete]),
    ("Windows line ends", b"Done.\r\n\r\n<promise>COMPLETE</promise>\r\n", &[Promise::Complete]),
    ("a fence with Windows line ends", b"```\r\n<promise>COMPLETE</promise>\r\n```\r\n", &[]),
    (
        "behind a fence with Windows line ends",
        b"```\r\n<promise>BLOCKED</promise>\r\n```\r\n<promise>COMPLETE</promise>\r\n",
        &[Promise::Complete],
    ),
    ("spaces and tabs behind", b"<promise>COMPLETE</promise> \t  \n", &[Promise::Complete]),
    (
        "spaces behind a closing fence",
        b"```\n```  \n<promise>COMPLETE</promise>\n",
        &[Promise::Complete],
    ),
    ("a tab in front", b"\t<promise>COMPLETE</promise>\n", &[]),
    ("a space and a tab in front", b" \t<promise>COMPLETE</promise>\n", &[]),
    ("a tab behind a list marker", b"-\tdone\n\n\t<promise>COMPLETE</promise>\n", &[]),
    ("a tab inside", b"<promise>\tCOMPLETE</promise>\n", &[]),
    (
        "anthropics/claude-code#68665: control characters elsewhere",
        b"Progress \x08\x08\x00\x1f\x0b\x7f and a bell \x07\n\n<promise>COMPLETE</promise>\n",
        &[Promise::Complete],
    ),
    (
        "anthropics/claude-code#68665: a control character on the line before",
        b"CI is green.\x01\n<promise>COMPLETE</promise>\n",
        &[Promise::Complete],
    ),
    ("a control character in it", b"<promise>COM\x00PLETE</promise>\n", &[]),
    ("a control character behind it", b"<promise>COMPLETE</promise>\x07\n", &[]),
    ("a form feed in front", b"\x0c<promise>COMPLETE</promise>\n", &[]),
    (
        "colours elsewhere",
        b"\x1b[32mok\x1b[0m\n<promise>COMPLETE</promise>\n",
        &[Promise::Complete],
    ),
    ("a colour around it", b"\x1b[32m<promise>COMPLETE</promise>\x1b[0m\n", &[]),
    ("a reset behind it", b"<promise>COMPLETE</promise>\x1b[0m\n", &[]),
    ("a line written over another", b"working\r<promise>COMPLETE</promise>\n", &[]),
    ("carriage returns as line ends", b"Done.\r<promise>COMPLETE</promise>\r", &[]),
    (
        "a byte order mark at the start",
        b"\xef\xbb\xbf<promise>COMPLETE</promise>",
        &[Promise::Complete],
    ),
    (
        "a byte order mark, then a fence",
        b"\xef\xbb\xbf```\n<promise>COMPLETE</promise>\n```\n",
        &[],
    ),
    ("a byte order mark, then a comment", b"\xef\xbb\xbf<!--\n<promise>COMPLETE</promise>", &[]),
    ("a byte order mark later", b"Done.\n\xef\xbb\xbf<promise>COMPLETE</promise>\n", &[]),
    ("two byte order marks", b"\xef\xbb\xbf\xef\xbb\xbf<promise>COMPLETE</promise>\n", &[]),
    ("a zero-width space in front", b"\xe2\x80\x8b<promise>COMPLETE</promise>\n", &[]),
    ("a zero-width joiner inside", b"<promise>COMPLETE\xe2\x80\x8d</promise>\n", &[]),
    ("a no-break space behind", b"<promise>COMPLETE</promise>\xc2\xa0\n", &[]),
    ("a direction mark in front", b"\xe2\x80\x8f<promise>COMPLETE</promise>\n", &[]),
    ("a line separator in front", b"Done.\xe2\x80\xa8<promise>COMPLETE</promise>\n", &[]),
    (
        "invalid UTF-8 elsewhere",
        b"\xff\xfe \xc3\n<promise>COMPLETE</promise>\n",
        &[Promise::Complete],
    ),
    ("invalid UTF-8 behind it", b"<promise>COMPLETE</promise>\xff\n", &[]),
    ("nothing but line ends", b"\n\r\n\n", &[]),
];

pub(super) fn cases() -> impl Iterator<Item = Case> {
    let plain = PLAIN.iter().map(|(about, message, expected)| Case {
        about: (*about).to_owned(),
        message: message.to_vec(),
        expected: expected.to_vec(),
    });
    plain.chain(long())
}

/// Lines that are longer than the kept part of a line.
fn long() -> Vec<Case> {
    let case = |about: &str, message: String, expected: &[Promise]| Case {
        about: about.to_owned(),
        message: message.into_bytes(),
        expected: expected.to_vec(),
    };
    let long = "x".repeat(LINE_MAX + 10);
    let spaces = " ".repeat(LINE_MAX);
    let promise = "<promise>COMPLETE</promise>";
    // One byte is reserved for a carriage return.
    let fit = " ".repeat(LINE_MAX - 1 - promise.len());
    vec![
        case("behind a long line", format!("{long}\n{promise}\n"), &[Promise::Complete]),
        case("at the end of a long line", format!("{long}{promise}\n"), &[]),
        case("a line as long as can be", format!("{promise}{fit}\n"), &[Promise::Complete]),
        case("a line that is too long", format!("{promise}{spaces}\n"), &[]),
        case("text behind what is kept", format!("{promise}{spaces}not yet\n"), &[]),
        case("a comment in a long line", format!("{long}<!--\n{promise}\n-->\n"), &[]),
        case("the end of one", format!("<!--\n{long}-->\n{promise}\n"), &[Promise::Complete]),
        case("a fence with a long line", format!("```{long}\n{promise}\n```\n"), &[]),
        case("a long line closes no fence", format!("```\n```{spaces}x\n{promise}\n"), &[]),
    ]
}
