//! Tokens with a known shape: a prefix that their issuer gives them, and enough bytes after it.
//!
//! The value of such a token need not be known. Encoded tokens (base64, percent signs) are not
//! found. The search ignores colour codes in and around a token (`colours`). Codes in a token are
//! removed with it.

use std::ops::RangeInclusive;
use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, MatchKind};

use super::StreamEnd;
use super::colours::Uncoloured;

/// The longest body of a token.
const BODY_MAX: usize = 512;
/// The longest private key.
const KEY_MAX: usize = 16 * 1024;
/// The first line of a private key ends before this.
const KEY_LINE: usize = 48;
/// The part of an OpenAI key that is the same in each.
const OPENAI_MARK: &[u8] = b"T3BlbkFJ";

/// Largest number of colour-code bytes in one token.
///
/// A token with more is replaced up to that point, if it is long enough by then.
const COLOURS_MAX: usize = 32 * 1024;

struct TokenShape {
    /// The name in the marker.
    name: &'static str,
    prefixes: &'static [&'static str],
    is_body: fn(u8) -> bool,
    /// The number of bytes after the prefix.
    length: RangeInclusive<usize>,
    /// Bytes that the body has.
    has: &'static [u8],
}

const fn shape(
    name: &'static str,
    prefixes: &'static [&'static str],
    is_body: fn(u8) -> bool,
    length: RangeInclusive<usize>,
) -> TokenShape {
    TokenShape { name, prefixes, is_body, length, has: b"" }
}

fn is_alphanumeric(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
}

fn is_upper(byte: u8) -> bool {
    byte.is_ascii_uppercase() || byte.is_ascii_digit()
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

fn is_dashed(byte: u8) -> bool {
    is_word(byte) || byte == b'-'
}

fn is_dotted(byte: u8) -> bool {
    is_dashed(byte) || byte == b'.'
}

/// Whether a byte can be part of a key, also as a JSON string, or of headers of older formats.
fn is_key_text(byte: u8) -> bool {
    is_alphanumeric(byte) || b"+/=-:, \r\n\\".contains(&byte)
}

static SHAPES: &[TokenShape] = &[
    shape("github-token", &["ghp_", "gho_", "ghu_", "ghs_", "ghr_"], is_word, 36..=BODY_MAX),
    shape("github-token", &["github_pat_"], is_word, 22..=BODY_MAX),
    shape("gitlab-token", &["glpat-", "gldt-", "glrt-", "glcbt-"], is_dashed, 20..=BODY_MAX),
    shape("aws-key", &["AKIA", "ASIA"], is_upper, 16..=16),
    shape("anthropic-key", &["sk-ant-"], is_dashed, 20..=BODY_MAX),
    shape("openai-key", &["sk-proj-", "sk-svcacct-", "sk-admin-"], is_dashed, 20..=BODY_MAX),
    TokenShape {
        has: OPENAI_MARK,
        ..shape("openai-key", &["sk-"], is_alphanumeric, 40..=BODY_MAX)
    },
    shape("openrouter-key", &["sk-or-v1-"], is_alphanumeric, 32..=BODY_MAX),
    shape("google-key", &["AIza"], is_dashed, 35..=35),
    shape("google-token", &["ya29."], is_dashed, 20..=BODY_MAX),
    shape(
        "slack-token",
        &["xoxa-", "xoxb-", "xoxp-", "xoxr-", "xoxs-", "xapp-"],
        is_dashed,
        10..=BODY_MAX,
    ),
    shape("npm-token", &["npm_"], is_alphanumeric, 36..=36),
    shape("pypi-token", &["pypi-AgE"], is_dashed, 50..=BODY_MAX),
    shape(
        "stripe-key",
        &["sk_live_", "sk_test_", "rk_live_", "rk_test_"],
        is_alphanumeric,
        16..=BODY_MAX,
    ),
    shape("sendgrid-key", &["SG."], is_dotted, 50..=BODY_MAX),
    shape("hugging-face-token", &["hf_"], is_alphanumeric, 30..=BODY_MAX),
    shape("groq-key", &["gsk_"], is_alphanumeric, 40..=BODY_MAX),
    shape("xai-key", &["xai-"], is_alphanumeric, 60..=BODY_MAX),
    shape("digitalocean-token", &["dop_v1_", "doo_v1_", "dor_v1_"], is_alphanumeric, 40..=BODY_MAX),
    shape("vault-token", &["hvs.", "hvb."], is_dashed, 24..=BODY_MAX),
    shape("age-key", &["AGE-SECRET-KEY-1"], is_upper, 40..=BODY_MAX),
    TokenShape { has: b".eyJ", ..shape("json-web-token", &["eyJ"], is_dotted, 40..=4 * BODY_MAX) },
    TokenShape {
        has: KEY_CLOSE,
        ..shape("private-key", &["-----BEGIN "], is_key_text, 64..=KEY_MAX)
    },
];

/// The end of a private key.
const KEY_END: &[u8] = b"-----END ";
const KEY_CLOSE: &[u8] = b"PRIVATE KEY-----";

struct ShapeSearch {
    prefixes: AhoCorasick,
    /// The shape and the text of each prefix.
    of_prefix: Vec<(&'static TokenShape, &'static [u8])>,
    longest: usize,
}

/// The search for prefixes, or `None` if it cannot be built, which constants rule out.
///
/// Without it, the redactor lets no text pass.
static SEARCH: LazyLock<Option<ShapeSearch>> = LazyLock::new(|| {
    let of_prefix: Vec<(&TokenShape, &[u8])> = SHAPES
        .iter()
        .flat_map(|shape| shape.prefixes.iter().map(move |prefix| (shape, prefix.as_bytes())))
        .collect();
    let mut builder = AhoCorasick::builder();
    builder.match_kind(MatchKind::LeftmostLongest);
    let prefixes = builder.build(of_prefix.iter().map(|(_, prefix)| prefix)).ok()?;
    let longest = of_prefix.iter().map(|(_, prefix)| prefix.len()).max()?;
    Some(ShapeSearch { prefixes, of_prefix, longest })
});

/// Writes the certain part of `bytes`, with a marker for each token. Returns the position of the
/// rest.
pub(super) fn redact(bytes: &[u8], end: StreamEnd, out: &mut Vec<u8>) -> usize {
    match SEARCH.as_ref() {
        Some(search) => search.redact(bytes, end, out),
        None => bytes.len(),
    }
}

enum TokenCandidate {
    No,
    /// More bytes decide.
    Open,
    /// The position after a token.
    Token(usize),
}

impl ShapeSearch {
    fn redact(&self, raw: &[u8], end: StreamEnd, out: &mut Vec<u8>) -> usize {
        let uncoloured = Uncoloured::new(raw, end);
        let bytes = &*uncoloured.bytes;
        // More output does not help with a token that has too many codes.
        let end_from = |start: usize| match uncoloured.left_out_behind(start) > COLOURS_MAX {
            true => StreamEnd::Final,
            false => end,
        };
        // A position in `raw`, and one in `bytes`.
        let (mut written, mut from) = (0, 0);
        while let Some(found) = self.prefixes.find(&bytes[from..]) {
            let start = from + found.start();
            let (shape, _) = self.of_prefix[found.pattern().as_usize()];
            match self.candidate(bytes, start, from + found.end(), shape, end_from(start)) {
                TokenCandidate::No => from = start + 1,
                TokenCandidate::Open => {
                    let start = uncoloured.position(start);
                    out.extend_from_slice(&raw[written..start]);
                    return start;
                }
                TokenCandidate::Token(behind) => {
                    out.extend_from_slice(&raw[written..uncoloured.position(start)]);
                    out.extend_from_slice(format!("[redacted:{}]", shape.name).as_bytes());
                    written = uncoloured.position(behind - 1) + 1;
                    from = behind;
                }
            }
        }
        let open = match end {
            StreamEnd::Final => bytes.len(),
            StreamEnd::Open => self.partial_prefix(bytes, from),
        };
        let open = match end_from(open) {
            StreamEnd::Final => raw.len(),
            StreamEnd::Open => uncoloured.position(open),
        };
        out.extend_from_slice(&raw[written..open]);
        open
    }

    fn candidate(
        &self,
        bytes: &[u8],
        start: usize,
        body_start: usize,
        shape: &TokenShape,
        end: StreamEnd,
    ) -> TokenCandidate {
        let is_open = matches!(end, StreamEnd::Open);
        if is_open && self.is_partial_prefix(&bytes[start..]) {
            return TokenCandidate::Open;
        }
        let body = &bytes[body_start..];
        let run = body.iter().take(*shape.length.end()).take_while(|byte| (shape.is_body)(**byte));
        let run = run.count();
        if shape.has == KEY_CLOSE
            && body.get(..KEY_LINE).is_some_and(|line| !contains(line, KEY_CLOSE))
        {
            return TokenCandidate::No;
        }
        let whole = key_length(shape, &body[..run]);
        let may_grow = run == body.len() && run < *shape.length.end() && whole.is_none();
        if is_open && may_grow {
            return TokenCandidate::Open;
        }
        let length = whole.unwrap_or(run);
        let token = &body[..length];
        if length < *shape.length.start() || !contains(token, shape.has) {
            return TokenCandidate::No;
        }
        TokenCandidate::Token(body_start + length)
    }

    /// Returns the first position, not before `from`, from which `bytes` may be the beginning of a
    /// prefix.
    fn partial_prefix(&self, bytes: &[u8], from: usize) -> usize {
        let first = bytes.len().saturating_sub(self.longest.saturating_sub(1)).max(from);
        (first..bytes.len()).find(|at| self.is_partial_prefix(&bytes[*at..])).unwrap_or(bytes.len())
    }

    fn is_partial_prefix(&self, bytes: &[u8]) -> bool {
        let is_longer = |prefix: &[u8]| prefix.len() > bytes.len() && prefix.starts_with(bytes);
        self.of_prefix.iter().any(|(_, prefix)| is_longer(prefix))
    }
}

/// Returns the length of a private key up to its last line, if that line is present.
fn key_length(shape: &TokenShape, body: &[u8]) -> Option<usize> {
    if shape.has != KEY_CLOSE {
        return None;
    }
    let last_line = position(body, KEY_END)? + KEY_END.len();
    let close = position(&body[last_line..], KEY_CLOSE)?;
    Some(last_line + close + KEY_CLOSE.len())
}

fn position(bytes: &[u8], sought: &[u8]) -> Option<usize> {
    bytes.windows(sought.len()).position(|window| window == sought)
}

fn contains(bytes: &[u8], sought: &[u8]) -> bool {
    sought.is_empty() || position(bytes, sought).is_some()
}
