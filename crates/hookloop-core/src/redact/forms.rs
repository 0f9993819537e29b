//! The forms in which a secret may be printed.

use super::{SHORTEST_LINE, SHORTEST_SECRET};

/// Returns all forms of a secret and of its lines, each once.
pub(super) fn of_secret(secret: &[u8]) -> Vec<Vec<u8>> {
    // A secret that was read from a file ends with a newline, and is printed without.
    let secret = without_newline(secret);
    let mut forms = Vec::new();
    if secret.len() >= SHORTEST_SECRET {
        add_forms(secret, &mut forms);
    }
    if secret.contains(&b'\n') {
        for line in secret.split(|byte| *byte == b'\n').map(without_newline) {
            // The frame of a PEM key is no secret, and stands around certificates too.
            if line.len() >= SHORTEST_LINE && !line.starts_with(b"-----") {
                add_forms(line, &mut forms);
            }
        }
    }
    forms.sort();
    forms.dedup();
    forms
}

fn without_newline(text: &[u8]) -> &[u8] {
    let end = text.iter().rposition(|byte| !matches!(byte, b'\n' | b'\r'));
    &text[..end.map_or(0, |at| at + 1)]
}

fn add_forms(text: &[u8], forms: &mut Vec<Vec<u8>>) {
    forms.push(text.to_vec());
    add_base64(text, forms);
    add_percent(text, forms);
    for digits in [LOWER, UPPER] {
        forms.push(text.iter().flat_map(|byte| hex(*byte, digits)).collect());
    }
    if let Ok(text) = std::str::from_utf8(text) {
        add_json(text, forms);
    }
}

const LOWER: &[u8; 16] = b"0123456789abcdef";
const UPPER: &[u8; 16] = b"0123456789ABCDEF";

fn hex(byte: u8, digits: &[u8; 16]) -> [u8; 2] {
    [digits[usize::from(byte >> 4)], digits[usize::from(byte & 15)]]
}

/// The line lengths of `base64` and PEM tools.
const LINE_LENGTHS: [usize; 2] = [76, 64];

fn add_base64(text: &[u8], forms: &mut Vec<Vec<u8>>) {
    for last_two in [*b"+/", *b"-_"] {
        // The bytes before the secret shift it by up to two bytes.
        for shift in 0..3 {
            let shifted = [&[0; 2][..shift], text].concat();
            let encoded = base64(&shifted, last_two);
            // Characters that depend on neighbours too are not the secret's own.
            let own_from = [0, 2, 3][shift];
            let is_whole = shifted.len().is_multiple_of(3);
            let own_to = if is_whole { encoded.len() } else { encoded.len() - 1 };
            let own = &encoded[own_from..own_to];
            forms.push(own.to_vec());
            if !is_whole {
                let unpadded = &encoded[own_from..];
                let padding = &b"=="[..3 - shifted.len() % 3];
                forms.push(unpadded.to_vec());
                forms.push([unpadded, padding].concat());
            }
            if shift == 0 {
                let lines = LINE_LENGTHS.into_iter().filter(|length| *length < own.len());
                let lines = lines.flat_map(|length| own.chunks(length));
                forms.extend(lines.filter(|line| line.len() >= SHORTEST_LINE).map(<[u8]>::to_vec));
            }
        }
    }
}

/// Encodes bytes in base64 without padding.
fn base64(bytes: &[u8], last_two: [u8; 2]) -> Vec<u8> {
    const FIRST: &[u8; 62] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
    let digit = |six: u32| {
        let six = (six & 63) as usize;
        FIRST.get(six).copied().unwrap_or_else(|| last_two[six - FIRST.len()])
    };
    bytes
        .chunks(3)
        .flat_map(|group| {
            let byte = |at: usize| u32::from(group.get(at).copied().unwrap_or(0));
            let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
            [18, 12, 6, 0].map(|shift| digit(bits >> shift)).into_iter().take(group.len() + 1)
        })
        .collect()
}

/// The unescaped bytes differ: RFC 3986, JavaScript, paths, forms, and none at all.
const KEPT_BY_PERCENT: [&[u8]; 6] =
    [b"-_.~", b"-_.!~*'()", b"-_.~/", b"-_.*", b"-_.!~*'();/?:@&=+$,#", b""];

fn add_percent(text: &[u8], forms: &mut Vec<Vec<u8>>) {
    for digits in [LOWER, UPPER] {
        let escape = |byte: u8| {
            let [high, low] = hex(byte, digits);
            vec![b'%', high, low]
        };
        for kept in KEPT_BY_PERCENT {
            for space in [vec![b'+'], escape(b' ')] {
                let encode = |byte: &u8| match *byte {
                    b' ' => space.clone(),
                    byte if byte.is_ascii_alphanumeric() || kept.contains(&byte) => vec![byte],
                    byte => escape(byte),
                };
                forms.push(text.iter().flat_map(encode).collect());
            }
        }
        forms.push(text.iter().flat_map(|byte| escape(*byte)).collect());
    }
}

/// Optional escapes of JSON writers.
#[derive(Clone, Copy)]
struct JsonEscapes {
    slash: bool,
    /// All but ASCII.
    unicode: bool,
    /// `<`, `>` and `&`, for text inside of HTML.
    html: bool,
    /// `\u0008` and `\u000c` in place of `\b` and `\f`.
    long: bool,
    digits: &'static [u8; 16],
}

fn add_json(text: &str, forms: &mut Vec<Vec<u8>>) {
    for choice in 0..32_u8 {
        let has = |bit: u8| choice & (1 << bit) != 0;
        let digits = if has(4) { UPPER } else { LOWER };
        let json =
            JsonEscapes { slash: has(0), unicode: has(1), html: has(2), long: has(3), digits };
        let escaped = json.escape(text);
        // JSON in a string of JSON.
        forms.push(json.escape(&escaped).into_bytes());
        forms.push(escaped.into_bytes());
    }
}

impl JsonEscapes {
    fn escape(self, text: &str) -> String {
        let mut escaped = String::new();
        for c in text.chars() {
            match c {
                '"' => escaped.push_str("\\\""),
                '\\' => escaped.push_str("\\\\"),
                '\n' => escaped.push_str("\\n"),
                '\r' => escaped.push_str("\\r"),
                '\t' => escaped.push_str("\\t"),
                '\u{8}' if !self.long => escaped.push_str("\\b"),
                '\u{c}' if !self.long => escaped.push_str("\\f"),
                '/' if self.slash => escaped.push_str("\\/"),
                '<' | '>' | '&' if self.html => self.escape_units(c, &mut escaped),
                c if c < ' ' || (!c.is_ascii() && self.unicode) => {
                    self.escape_units(c, &mut escaped);
                }
                c => escaped.push(c),
            }
        }
        escaped
    }

    fn escape_units(self, c: char, escaped: &mut String) {
        for unit in c.encode_utf16(&mut [0; 2]) {
            escaped.push_str("\\u");
            for byte in unit.to_be_bytes() {
                escaped.extend(hex(byte, self.digits).map(char::from));
            }
        }
    }
}
