use data_encoding::{BASE64, BASE64_NOPAD, BASE64URL, BASE64URL_NOPAD, HEXLOWER, HEXUPPER};
use proptest::prelude::*;

use super::*;

const SECRET: &str = "p\"a/s\\s é<w>\tö&r=d?+~";
const PEM: &str = "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkq\nshort\nhkiG9w0BAQEFAASC\n-----END PRIVATE KEY-----\n";

fn redactor() -> Redactor {
    let secrets = [("A", SECRET), ("B", "hunter2hunter2"), ("KEY", PEM), ("C", "abc\n"), ("D", "")];
    Redactor::new(secrets).unwrap()
}

fn streamed(redactor: &Redactor, chunks: &[&[u8]]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut stream = redactor.stream();
    for chunk in chunks {
        stream.push(chunk, &mut out);
    }
    stream.finish(&mut out);
    out
}

fn check(redactor: &Redactor, text: &str, expected: &str) {
    assert_eq!(redactor.text(text), expected, "{text}");
}

#[test]
fn every_form_of_a_secret_is_found() {
    let redactor = redactor();
    let json = serde_json::to_string(SECRET).unwrap();
    let json = json.trim_matches('"');
    let forms = [
        SECRET.to_owned(),
        HEXLOWER.encode(SECRET.as_bytes()),
        HEXUPPER.encode(SECRET.as_bytes()),
        json.to_owned(),
        json.replace('/', "\\/"),
        json.replace('é', "\\u00e9").replace('ö', "\\u00f6"),
        json.replace('é', "\\u00E9").replace('ö', "\\u00F6"),
        json.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026"),
        json.replace('\\', "\\\\").replace('"', "\\\""),
        "p%22a%2Fs%5Cs%20%C3%A9%3Cw%3E%09%C3%B6%26r%3Dd%3F%2B~".to_owned(),
        "p%22a%2fs%5cs%20%c3%a9%3cw%3e%09%c3%b6%26r%3dd%3f%2b~".to_owned(),
        "p%22a/s%5Cs%20%C3%A9%3Cw%3E%09%C3%B6%26r%3Dd%3F%2B~".to_owned(),
        "p%22a%2Fs%5Cs+%C3%A9%3Cw%3E%09%C3%B6%26r%3Dd%3F%2B%7E".to_owned(),
    ];
    for form in forms {
        check(&redactor, &format!("a {form} b"), "a [redacted:A] b");
    }
    let percent: String = SECRET.bytes().map(|byte| format!("%{byte:02X}")).collect();
    check(&redactor, &percent, "[redacted:A]");
}

#[test]
fn a_secret_is_redacted_at_any_offset_of_base64() {
    let redactor = redactor();
    for secret in [SECRET, "hunter2hunter2"] {
        for before in ["", "u", "us", "user:", "user:ada:", "{\"k\":\""] {
            for after in ["", "\n", "!!", "\"}\n"] {
                let text = format!("{before}{secret}{after}");
                for encoding in [BASE64, BASE64_NOPAD, BASE64URL, BASE64URL_NOPAD] {
                    let encoded = encoding.encode(text.as_bytes());
                    let redacted = redactor.text(&encoded);
                    assert!(redacted.contains("[redacted:"), "{encoded}");
                    // Only characters that the secret shares with its neighbours remain.
                    let left = redacted.len() - "[redacted:A]".len();
                    assert!(left <= (before.len() + after.len()).div_ceil(3) * 4 + 4, "{redacted}");
                }
            }
        }
        check(&redactor, &BASE64.encode(secret.as_bytes()), &redactor.text(secret));
    }
}

#[test]
fn base64_over_several_lines_is_found() {
    let secret = "0123456789".repeat(20);
    let redactor = Redactor::new([("LONG", &secret)]).unwrap();
    let encoded = BASE64.encode(secret.as_bytes());
    for length in [64, 76] {
        let lines: Vec<&[u8]> = encoded.as_bytes().chunks(length).collect();
        let redacted = streamed(&redactor, &[&lines.join(&b'\n')]);
        let expected = vec!["[redacted:LONG]"; lines.len()].join("\n");
        let redacted = String::from_utf8(redacted).unwrap();
        assert!(redacted.starts_with(&expected) && redacted.len() <= expected.len() + 2);
    }
}

#[test]
fn lines_of_a_secret_are_secrets() {
    let redactor = redactor();
    check(&redactor, PEM, "[redacted:KEY]\n");
    check(&redactor, "x MIIEvQIBADANBgkq\r\nshort", "x [redacted:KEY]\r\nshort");
    let frame = "-----BEGIN PRIVATE KEY-----\n";
    check(&redactor, frame, frame);
    check(&redactor, &serde_json::to_string(PEM).unwrap(), "\"[redacted:KEY]\\n\"");
}

#[test]
fn the_longest_matching_secret_is_redacted() {
    let redactor = Redactor::new([("S", "abcdef"), ("L", "abcdefgh"), ("O", "ghijkl")]).unwrap();
    check(&redactor, "abcdefg", "[redacted:S]g");
    check(&redactor, "abcdefgh", "[redacted:L]");
    check(&redactor, "abcdefabcdef", "[redacted:S][redacted:S]");
    check(&redactor, "abcdefghijkl", "[redacted:L]ijkl");
    check(&redactor, "abcdeghijkl", "abcde[redacted:O]");
}

#[test]
fn a_secret_name_that_contains_a_secret_is_not_shown() {
    let redactor = Redactor::new([("password", "password"), ("x", "redacted")]).unwrap();
    check(&redactor, "my password", "my [***]");
    check(&redactor, "redacted", "[***]");
}

#[test]
fn short_and_empty_secrets_are_not_redacted() {
    let text = "abc abcde \u{fffd} nothing";
    check(
        &Redactor::new([("A", "abcde"), ("B", ""), ("C", "\n\n\n\n\n\n\n")]).unwrap(),
        text,
        text,
    );
    check(&Redactor::new([("", ""); 0]).unwrap(), text, text);
}

#[test]
fn debug_output_has_no_secrets() {
    let redactor = redactor();
    let mut stream = redactor.stream();
    stream.push(b"hunter2", &mut Vec::new());
    let shown = format!("{redactor:?} {stream:?}");
    assert!(shown.contains("redacted:B") && !shown.contains("hunter2"), "{shown}");
    assert!(!shown.contains(&format!("{:?}", b"hunter2")), "{shown}");
}

#[test]
fn redaction_does_not_depend_on_chunks() {
    let redactor = redactor();
    let base64 = BASE64.encode(format!("user:{SECRET}\n").as_bytes());
    for text in [
        format!("a {SECRET} b hunter2hunter2hunter2"),
        format!("{base64} {PEM}"),
        serde_json::to_string(&format!("{PEM}{SECRET}")).unwrap(),
        "hunter2hunter hunterhunter2hunter2 p\"a/s\\s é<w>".to_owned(),
    ] {
        let (text, whole) = (text.as_bytes(), redactor.text(&text).into_bytes());
        for one in 0..=text.len() {
            assert_eq!(streamed(&redactor, &[&text[..one], &text[one..]]), whole);
            for two in one..=text.len() {
                let chunks = [&text[..one], &text[one..two], &text[two..]];
                assert_eq!(streamed(&redactor, &chunks), whole, "cut at {one} and {two}");
            }
        }
        let bytes: Vec<&[u8]> = text.chunks(1).collect();
        assert_eq!(streamed(&redactor, &bytes), whole);
    }
}

#[test]
fn only_a_possible_start_of_a_secret_is_buffered() {
    let redactor = redactor();
    let held = |text: &str| {
        let mut out = Vec::new();
        redactor.stream().push(text.as_bytes(), &mut out);
        text.len() - out.len()
    };
    assert_eq!(held("progress: 10%\n"), 0);
    assert_eq!(held("a hunter"), "hunter".len());
    assert_eq!(held("a hunterahun"), "hun".len());
}

/// Tokens of each issuer, made up, with the name that takes their place. They are put together here, so that programs
/// that search sources for tokens find none.
fn tokens() -> Vec<(String, &'static str)> {
    let letters = |length: usize| "aB3dE6gH9kL2".chars().cycle().take(length).collect::<String>();
    let upper = |length: usize| letters(length).to_ascii_uppercase();
    let of = |prefix: &str, rest: String| format!("{prefix}{rest}");
    vec![
        (of("ghp_", letters(36)), "github-token"),
        (of("ghs_", letters(36)), "github-token"),
        (of("github_pat_", letters(22) + "_" + &letters(59)), "github-token"),
        (of("glpat-", letters(20)), "gitlab-token"),
        (of("AKIA", upper(16)), "aws-key"),
        (of("sk-ant-", format!("api03-{}-{}AA", letters(40), letters(40))), "anthropic-key"),
        (of("sk-proj-", letters(80)), "openai-key"),
        (of("sk-", letters(20) + "T3BlbkFJ" + &letters(20)), "openai-key"),
        (of("sk-or-v1-", letters(64)), "openrouter-key"),
        (of("AIza", letters(35)), "google-key"),
        (of("xoxb-", format!("123456789012-{}", letters(24))), "slack-token"),
        (of("npm_", letters(36)), "npm-token"),
        (of("pypi-AgE", letters(150)), "pypi-token"),
        (of("sk_live_", letters(24)), "stripe-key"),
        (of("SG.", format!("{}.{}", letters(22), letters(43))), "sendgrid-key"),
        (of("hf_", letters(34)), "hugging-face-token"),
        (
            of("eyJ", format!("{}.eyJ{}.{}", letters(33), letters(50), letters(43))),
            "json-web-token",
        ),
        (
            format!(
                "-----BEGIN RSA {0}-----\n{1}\n{1}\n-----END RSA {0}-----",
                "PRIVATE KEY",
                letters(64)
            ),
            "private-key",
        ),
    ]
}

#[test]
fn tokens_of_known_shapes_are_found_wherever_the_output_is_cut() {
    let redactor = Redactor::new([("A", "hunter2hunter2")]).unwrap();
    for (token, name) in tokens() {
        let text = format!("key={token}\nhunter2hunter2 and {token}, ghp_ {token}");
        let marker = format!("[redacted:{name}]");
        let expected = format!("key={marker}\n[redacted:A] and {marker}, ghp_ {marker}");
        check(&redactor, &text, &expected);
        let json = serde_json::to_string(&token).unwrap();
        check(&redactor, &json, &format!("\"{marker}\""));
        for cut in 0..text.len() {
            let (one, two) = text.as_bytes().split_at(cut);
            assert_eq!(streamed(&redactor, &[one, two]), expected.as_bytes(), "{name} at {cut}");
        }
        let bytes: Vec<&[u8]> = text.as_bytes().chunks(1).collect();
        assert_eq!(streamed(&redactor, &bytes), expected.as_bytes(), "{name}");
    }
}

/// Returns a token as programs colour it: a searched part, each character, or the whole.
fn coloured(token: &str) -> Vec<String> {
    let colour_from = |at: usize| {
        let (begin, end) = token.split_at(at);
        format!("{begin}\u{1b}[01;31m\u{1b}[K{end}\u{1b}[m\u{1b}[K")
    };
    let each = |code: &str| token.chars().map(|c| format!("{code}{c}")).collect::<String>();
    let mut all: Vec<String> = [1, 2, 3, token.len() / 2].map(colour_from).into();
    all.push(format!("\u{1b}[1m{token}\u{1b}(B\u{1b}[m"));
    all.push(each("\u{1b}[38;2;255;128;0m"));
    all.push(each("\\u001b[31m"));
    all
}

#[test]
fn tokens_with_colours_in_them_are_found_wherever_the_output_is_cut() {
    let redactor = Redactor::new([("A", "hunter2hunter2")]).unwrap();
    for (token, name) in tokens() {
        let marker = format!("[redacted:{name}]");
        for coloured in coloured(&token) {
            let text = format!("key={coloured}\nhunter2hunter2 \u{1b}[0mghp_ {coloured}!");
            let expected = redactor.text(&text);
            assert_eq!(expected.matches(&marker).count(), 2, "{text:?}: {expected:?}");
            // Nothing of the token is left, and the text around it is as it was.
            let rest = expected.replace(&marker, "");
            let plain = rest.split("\u{1b}[01;31m\u{1b}[K").collect::<String>();
            assert!(!plain.contains(&token[token.len() - 4..]), "{plain:?}");
            assert!(rest.contains("\n[redacted:A] \u{1b}[0mghp_ "), "{rest:?}");
            assert!(rest.starts_with("key=") && rest.ends_with('!'), "{rest:?}");
            let step = (text.len() / 64).max(1);
            for cut in (0..text.len()).step_by(step) {
                let (one, two) = text.as_bytes().split_at(cut);
                assert_eq!(streamed(&redactor, &[one, two]), expected.as_bytes(), "at {cut}");
            }
            if text.len() < 2_000 {
                let bytes: Vec<&[u8]> = text.as_bytes().chunks(1).collect();
                assert_eq!(streamed(&redactor, &bytes), expected.as_bytes(), "{name}");
            }
        }
    }
}

#[test]
fn redaction_of_a_coloured_token_does_not_depend_on_chunks() {
    let redactor = redactor();
    let (token, _) = tokens().swap_remove(0);
    for escape in ["\u{1b}[1;31m", "\u{1b}(B", "\\u001b[1m", "\\x1b[K", "\u{9b}0m"] {
        let text = format!("a {}{escape}{} {escape}b", &token[..2], &token[2..]);
        let expected = format!("a [redacted:github-token] {escape}b");
        check(&redactor, &text, &expected);
        let bytes = text.as_bytes();
        for one in 0..=bytes.len() {
            for two in one..=bytes.len() {
                let chunks = [&bytes[..one], &bytes[one..two], &bytes[two..]];
                let out = String::from_utf8(streamed(&redactor, &chunks)).unwrap();
                assert_eq!(out, expected, "cut at {one} and {two}");
            }
        }
    }
}

#[test]
fn coloured_text_without_tokens_passes() {
    let redactor = redactor();
    for text in [
        "\u{1b}[1mgh\u{1b}[0mp_ short \u{1b}[2J\u{1b}]0;title\u{7}\u{1b}",
        "\\u001b[1mcolour\\u001b[0m C:\\users\\e[1m \\",
        "AK\u{1b}[31mIA\u{1b}[0m",
    ] {
        check(&redactor, text, text);
        let bytes: Vec<&[u8]> = text.as_bytes().chunks(1).collect();
        assert_eq!(streamed(&redactor, &bytes), text.as_bytes());
    }
    // A token in a title or a link is no part of a code.
    let (token, _) = tokens().swap_remove(0);
    let link = format!("\u{1b}]8;;https://example.com/?t={token}\u{7}link");
    assert!(!redactor.text(&link).contains(&token), "{link:?}");
}

#[test]
fn endless_colour_codes_are_not_buffered_without_limit() {
    let redactor = redactor();
    for begin in ["gh", "ghp_", "ghp_aB3dE6gH9kL2"] {
        let mut out = Vec::new();
        let mut stream = redactor.stream();
        stream.push(begin.as_bytes(), &mut out);
        for _ in 0..64 {
            stream.push("\u{1b}[0m".repeat(256).as_bytes(), &mut out);
        }
        assert!(out.len() > 16 * 1024, "{begin}: {}", out.len());
        assert!(out.starts_with(begin.as_bytes()), "{begin}");
    }
}

#[test]
fn words_that_begin_like_tokens_pass() {
    let redactor = redactor();
    for text in [
        "npm_config_registry=https://registry.npmjs.org npm_lifecycle_event=test",
        "task-0123456789012345678901234567890123456789",
        "AKIA ASIA AKIATA",
        "sk-or-sk-ant-sk-proj-x",
        "github_pat_ ghp_short eyJhbGciOiJIUzI1NiJ9",
        "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n",
        "-----BEGIN RSA PRIVATE KEY-----",
        "hf_model SG.",
    ] {
        check(&redactor, text, text);
        let bytes: Vec<&[u8]> = text.as_bytes().chunks(1).collect();
        assert_eq!(streamed(&redactor, &bytes), text.as_bytes());
    }
}

#[test]
fn an_endless_token_is_not_buffered_without_limit() {
    let redactor = redactor();
    for (prefix, name) in
        [("ghp_", "github-token"), ("-----BEGIN PRIVATE KEY-----\n", "private-key")]
    {
        let mut out = Vec::new();
        let mut stream = redactor.stream();
        stream.push(prefix.as_bytes(), &mut out);
        for _ in 0..64 {
            stream.push(&[b'a'; 1024], &mut out);
        }
        assert!(out.len() > 40 * 1024, "{name}: {}", out.len());
        assert!(out.starts_with(format!("[redacted:{name}]").as_bytes()), "{name}");
    }
}

/// A deterministic number generator.
struct Course(u64);

impl Course {
    fn below(&mut self, limit: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % limit
    }
}

#[test]
fn a_thousand_secrets_are_redacted_in_all_encoded_forms() {
    const SIGNS: &[u8] =
        b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+/=_-. \"\\%&";
    let cuts = std::env::var("HOOKLOOP_CUTS").map_or(SAMPLED_CUTS, |text| text.parse().unwrap());
    let mut course = Course(1);
    let secrets: Vec<(String, Vec<u8>)> = (0..1_000)
        .map(|number| {
            let length = 12 + course.below(40);
            let value = (0..length).map(|_| SIGNS[course.below(SIGNS.len())]).collect();
            (format!("S{number}"), value)
        })
        .collect();
    let redactor = Redactor::new(secrets.iter().map(|(name, value)| (name, value))).unwrap();
    let mut forms_in_all = 0;
    for (name, value) in &secrets {
        for form in forms::of_secret(value) {
            forms_in_all += 1;
            let text = [b"before ", form.as_slice(), b" after"].concat();
            let expected = format!("before [redacted:{name}] after").into_bytes();
            let is_sample = cuts < text.len();
            for cut in 0..cuts.min(text.len()) {
                let cut = if is_sample { course.below(text.len()) } else { cut };
                assert_eq!(streamed(&redactor, &[&text[..cut], &text[cut..]]), expected);
            }
        }
    }
    assert!(forms_in_all >= 5_000, "{forms_in_all}");
}

/// Number of cuts that are tried for each form. `HOOKLOOP_CUTS` overrides it, and 1000 means all.
const SAMPLED_CUTS: usize = 3;

/// Secrets that overlap themselves and each other, and text made of their pieces.
fn tangled() -> impl Strategy<Value = (Vec<Vec<u8>>, Vec<u8>, Vec<usize>)> {
    let signs = |length| prop::collection::vec(prop::sample::select(b"ab\"\n/".to_vec()), length);
    let secrets = prop::collection::vec(signs(6..12), 1..4);
    secrets.prop_flat_map(move |secrets| {
        let mut forms: Vec<_> =
            secrets.iter().flat_map(|secret| forms::of_secret(secret)).collect();
        forms.push(b"no form".to_vec());
        let cut = |(form, from, length): (Vec<u8>, usize, usize)| {
            form.into_iter().skip(from).take(length).collect::<Vec<u8>>()
        };
        let whole = prop::sample::select(forms);
        let part = (whole.clone(), 0..12_usize, 0..40_usize).prop_map(cut);
        let text = prop::collection::vec(prop_oneof![part, whole, signs(0..4)], 0..12);
        let cuts = prop::collection::vec(1..30_usize, 1..20);
        (Just(secrets), text.prop_map(|parts| parts.concat()), cuts)
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..Default::default() })]

    #[test]
    fn no_form_of_a_secret_remains_in_redacted_output((secrets, text, cuts) in tangled()) {
        let redactor = Redactor::new(secrets.iter().map(|secret| ("N", secret))).unwrap();
        let mut chunks = Vec::new();
        let mut rest = text.as_slice();
        for cut in cuts {
            let (chunk, after) = rest.split_at(cut.min(rest.len()));
            chunks.push(chunk);
            rest = after;
        }
        chunks.push(rest);
        let out = streamed(&redactor, &chunks);
        prop_assert_eq!(&out, &streamed(&redactor, &[&text]));
        for form in secrets.iter().flat_map(|secret| forms::of_secret(secret)) {
            prop_assert!(!out.windows(form.len()).any(|window| window == form));
        }
    }

    #[test]
    fn bytes_without_secrets_pass(text in prop::collection::vec(any::<u8>(), 0..300), cut in 0..300_usize) {
        let redactor = redactor();
        let (one, two) = text.split_at(cut.min(text.len()));
        prop_assert_eq!(streamed(&redactor, &[one, two]), text);
    }
}
