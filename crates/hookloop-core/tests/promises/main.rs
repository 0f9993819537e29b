//! Final messages of agents, and the promises in them.
#![expect(clippy::unwrap_used, reason = "tests")]

mod bytes;
mod endings;

use hookloop_core::promise::{MessagePromises, NEAR_MISSES_MAX, Promise, Scanner, promises};
use proptest::prelude::*;

/// `=== promises | description`, then the message.
const MESSAGES: &str = include_str!("messages.txt");

struct Case {
    about: String,
    message: Vec<u8>,
    expected: Vec<Promise>,
}

fn cases() -> Vec<Case> {
    let in_file = MESSAGES.split("=== ").skip(1).map(|case| {
        let (head, message) = case.split_once('\n').unwrap();
        let (expected, about) = head.split_once(" | ").unwrap();
        Case {
            about: about.to_owned(),
            message: message.as_bytes().to_vec(),
            expected: named(expected),
        }
    });
    in_file.chain(bytes::cases()).collect()
}

fn named(promises: &str) -> Vec<Promise> {
    let promise = |word: &str| serde_json::from_value(word.into()).unwrap();
    promises.split(' ').filter(|word| *word != "none").map(promise).collect()
}

fn scan<'a>(chunks: impl IntoIterator<Item = &'a [u8]>) -> Vec<Promise> {
    scan_all(chunks).alone
}

fn scan_all<'a>(chunks: impl IntoIterator<Item = &'a [u8]>) -> MessagePromises {
    let mut scanner = Scanner::default();
    chunks.into_iter().for_each(|chunk| scanner.push(chunk));
    scanner.read_all()
}

#[test]
fn promises_of_the_message_corpus_are_found() {
    let cases = cases();
    assert!(cases.len() >= 140, "{} messages", cases.len());
    for Case { about, message, expected } in cases {
        assert_eq!(scan([message.as_slice()]), expected, "{about}");
        if let Ok(text) = str::from_utf8(&message) {
            assert_eq!(promises(text), expected, "{about}");
        }
    }
}

#[test]
fn promises_are_found_with_windows_line_endings() {
    for Case { about, message, expected } in cases() {
        let Ok(text) = String::from_utf8(message) else { continue };
        let message = text.replace("\r\n", "\n").replace('\n', "\r\n");
        assert_eq!(promises(&message), expected, "{about}");
    }
}

/// Splits a message at random, differently for each seed.
fn cut(message: &[u8], seed: u64) -> Vec<&[u8]> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut chunks = Vec::new();
    let mut rest = message;
    while !rest.is_empty() {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        // Mostly short chunks, because their boundaries matter most.
        let longest = 1 << (state >> 8 & 7);
        let (chunk, after) = rest.split_at((state >> 32) as usize % longest % (rest.len() + 1));
        chunks.push(chunk);
        rest = after;
    }
    chunks
}

#[test]
fn promises_do_not_depend_on_chunks() {
    for Case { about, message, expected } in cases() {
        assert_eq!(scan(message.chunks(1)), expected, "{about}, byte by byte");
        for seed in 0..120 {
            let chunks = cut(&message, seed);
            assert_eq!(chunks.concat(), message);
            assert_eq!(scan(chunks), expected, "{about}, cut by seed {seed}");
        }
    }
}

#[test]
fn a_promise_after_an_endless_line_is_found() {
    let mut scanner = Scanner::default();
    for _ in 0..10_000 {
        scanner.push(b"<promise>COMPLETE</promise> and so on, for ever ");
    }
    scanner.push(b"\n<promise>BLOCKED</promise>");
    assert_eq!(scanner.finish(), [Promise::Blocked]);
}

/// Returns a piece of text that the scanner recognizes.
fn piece() -> impl Strategy<Value = Vec<u8>> {
    let known = [
        "<promise>COMPLETE</promise>",
        "<promise>complete</promise>",
        "<promise>",
        "**",
        "\n",
        "\r\n",
        "```",
        "~~~",
        "- ",
        "1. ",
        "> ",
        "    ",
        "\t",
        "<!--",
        "-->",
        "<pre>",
        "</pre>",
        "`",
        "text",
        "\u{feff}",
        "\u{1b}[0m",
        "<",
        "-",
    ];
    prop_oneof![
        9 => prop::sample::select(known.to_vec()).prop_map(|piece| piece.as_bytes().to_vec()),
        1 => prop::collection::vec(any::<u8>(), 0..4),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 5_000, failure_persistence: None, ..Default::default() })]

    #[test]
    fn arbitrary_messages_have_at_most_one_promise_in_any_chunking(pieces in prop::collection::vec(piece(), 0..60)) {
        let message = pieces.concat();
        let whole = scan_all([message.as_slice()]);
        prop_assert_eq!(&scan_all(pieces.iter().map(Vec::as_slice)), &whole);
        prop_assert_eq!(&scan_all(message.chunks(1)), &whole);
        prop_assert!(whole.alone.len() <= 1);
        prop_assert!(whole.near_misses.len() <= NEAR_MISSES_MAX);
        prop_assert_eq!(&whole.counted(false), &whole.alone);
        prop_assert!(whole.counted(true).len() <= 1);
    }

    #[test]
    fn an_inline_promise_is_in_the_last_line(pieces in prop::collection::vec(piece(), 0..60)) {
        let message = pieces.concat();
        let whole = scan_all([message.as_slice()]);
        let lines: Vec<&[u8]> = message.split(|byte| *byte == b'\n').collect();
        let last = lines.iter().rev().find(|line| !line.trim_ascii().is_empty());
        if whole.inline.is_some() {
            let tag = b"<promise>COMPLETE</promise>";
            let has_tag = last.is_some_and(|line| line.windows(tag.len()).any(|found| found == tag));
            prop_assert!(has_tag);
            prop_assert!(!whole.near_misses.is_empty());
        }
        let more = [message.as_slice(), b"\nMore work remains"].concat();
        prop_assert_eq!(scan_all([more.as_slice()]).inline, None);
    }
}
