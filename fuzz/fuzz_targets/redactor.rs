//! Checks that no secret is left in output, in any printed form and with any chunk boundaries.
//!
//! Input: parts separated by NULs: up to four secrets, then a text. In the text, a byte from 1 to 4
//! stands for the secret of that number, in the form that the next byte selects. The first byte of
//! the input selects the chunk boundaries.

#![no_main]

use data_encoding::{BASE64, BASE64_NOPAD, BASE64URL, BASE64URL_NOPAD, HEXLOWER, HEXUPPER};
use hookloop_core::redact::{Redactor, SHORTEST_SECRET};
use libfuzzer_sys::fuzz_target;

const SECRETS_MAX: usize = 4;
const FORMS: u8 = 10;

fuzz_target!(|data: &[u8]| {
    let Some((&cut, rest)) = data.split_first() else { return };
    let mut parts: Vec<&[u8]> = rest.split(|byte| *byte == 0).collect();
    let Some(text) = parts.pop() else { return };
    parts.truncate(SECRETS_MAX);
    let names = ["A", "B", "C", "D"];
    let secrets: Vec<(&str, &[u8])> = names.into_iter().zip(parts).collect();
    let Ok(redactor) = Redactor::new(secrets.iter().copied()) else { return };
    let text = spelled_out(text, &secrets);

    let whole = streamed(&redactor, [text.as_slice()]);
    let width = usize::from(cut) + 1;
    assert_eq!(streamed(&redactor, text.chunks(width)), whole, "cut every {width} bytes");
    assert_eq!(streamed(&redactor, text.chunks(1)), whole, "cut everywhere");
    if let Ok(text) = std::str::from_utf8(&text) {
        assert_eq!(redactor.text(text), String::from_utf8_lossy(&whole));
    }
    if !contains(&whole, b"[redacted:") && !contains(&whole, b"[***]") {
        assert_eq!(whole, text, "the text changed without a redaction");
    }
    for (_, secret) in &secrets {
        check_absent(&whole, secret);
    }
    if !secrets.iter().any(|(_, secret)| is_marked(secret)) {
        assert_eq!(streamed(&redactor, [whole.as_slice()]), whole, "not idempotent");
    }
});

/// Returns the text with the secrets in place of their bytes.
fn spelled_out(text: &[u8], secrets: &[(&str, &[u8])]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut bytes = text.iter();
    while let Some(&byte) = bytes.next() {
        match secrets.get(usize::from(byte).wrapping_sub(1)) {
            Some((_, secret)) => {
                let form = bytes.next().copied().unwrap_or(0);
                out.extend(encoded(secret, form));
            }
            None => out.push(byte),
        }
    }
    out
}

fn encoded(secret: &[u8], form: u8) -> Vec<u8> {
    let shifted = |encoding: data_encoding::Encoding| {
        let before = &b"us"[..usize::from(form / FORMS) % 3];
        encoding.encode(&[before, secret].concat()).into_bytes()
    };
    match form % FORMS {
        0 => secret.to_vec(),
        1 => HEXLOWER.encode(secret).into_bytes(),
        2 => HEXUPPER.encode(secret).into_bytes(),
        3 => shifted(BASE64),
        4 => shifted(BASE64_NOPAD),
        5 => shifted(BASE64URL),
        6 => shifted(BASE64URL_NOPAD),
        7 => secret.iter().flat_map(|byte| format!("%{byte:02X}").into_bytes()).collect(),
        8 => json(secret),
        _ => percent(secret),
    }
}

/// Returns the secret as a JSON string, without its quotes.
fn json(secret: &[u8]) -> Vec<u8> {
    let Ok(text) = std::str::from_utf8(secret) else { return secret.to_vec() };
    let quoted = serde_json::to_string(text).unwrap_or_default();
    quoted.as_bytes()[1..quoted.len() - 1].to_vec()
}

fn percent(secret: &[u8]) -> Vec<u8> {
    let escape = |byte: &u8| match byte {
        b'-' | b'_' | b'.' | b'~' => vec![*byte],
        byte if byte.is_ascii_alphanumeric() => vec![*byte],
        byte => format!("%{byte:02X}").into_bytes(),
    };
    secret.iter().flat_map(escape).collect()
}

/// Returns whether a secret has characters of the replacement text, which could then contain it.
fn is_marked(secret: &[u8]) -> bool {
    secret.iter().any(|byte| b"[]".contains(byte))
}

fn check_absent(out: &[u8], secret: &[u8]) {
    let end = secret.iter().rposition(|byte| !b"\r\n".contains(byte)).map_or(0, |at| at + 1);
    let secret = &secret[..end];
    if secret.len() < SHORTEST_SECRET || is_marked(secret) {
        return;
    }
    for form in 0..FORMS {
        let encoded = encoded(secret, form);
        assert!(!contains(out, &encoded), "form {form} is left");
    }
    for (encoding, before) in [BASE64, BASE64URL].iter().flat_map(|e| [(e, 0), (e, 1), (e, 2)]) {
        let encoded = encoding.encode(&[&b"us"[..before], secret].concat());
        // The characters that encode only bits of the secret.
        let (from, to) = ((8 * before).div_ceil(6), 8 * (before + secret.len()) / 6);
        assert!(
            !contains(out, &encoded.as_bytes()[from..to]),
            "base64 shifted by {before} is left"
        );
    }
}

fn streamed<'a>(redactor: &Redactor, chunks: impl IntoIterator<Item = &'a [u8]>) -> Vec<u8> {
    let mut out = Vec::new();
    let mut stream = redactor.stream();
    for chunk in chunks {
        stream.push(chunk, &mut out);
    }
    stream.finish(&mut out);
    out
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window == part)
}
