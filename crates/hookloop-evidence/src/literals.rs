//! Literals of a source in one spelling for all languages.
//!
//! Strings are written `"content"`, numbers in decimal, and the other constants `true`, `false` and `null`.

use crate::syntax::NodeRef;

/// The kind of a literal, and its value in the common spelling.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum LiteralValue {
    /// The content, without quotes and escapes.
    Text(String),
    Number(String),
    Constant(&'static str),
}

/// Maximum bytes of a literal's spelling. A longer text is cut.
const SPELLING_BYTES_MAX: usize = 256;

impl LiteralValue {
    pub(crate) fn spelling(&self) -> String {
        match self {
            LiteralValue::Text(text) => {
                let end = text.floor_char_boundary(SPELLING_BYTES_MAX);
                format!("\"{}\"", &text[..end])
            }
            LiteralValue::Number(number) => number.clone(),
            LiteralValue::Constant(constant) => (*constant).to_owned(),
        }
    }
}

/// Returns the literals at and below a node, in source order.
pub(crate) fn literals_below<'t>(
    node: NodeRef<'t>,
) -> impl Iterator<Item = (NodeRef<'t>, LiteralValue)> {
    let mut covered = 0;
    std::iter::once(node).chain(node.descendants()).filter_map(move |node| {
        if node.id() < covered {
            return None;
        }
        let value = literal_of(node)?;
        covered = node.next_id();
        Some((node, value))
    })
}

/// Returns the value of a node that is a literal, also of a negative number.
pub(crate) fn literal_of(node: NodeRef<'_>) -> Option<LiteralValue> {
    match node.kind() {
        "string"
        | "string_literal"
        | "raw_string_literal"
        | "interpreted_string_literal"
        | "template_string"
        | "char_literal"
        | "rune_literal" => string_content(node).map(LiteralValue::Text),
        "integer" | "float" | "number" | "integer_literal" | "float_literal" | "int_literal"
        | "imaginary_literal" => {
            let sign = if has_minus_before(node) { "-" } else { "" };
            Some(LiteralValue::Number(format!("{sign}{}", plain_number(node.text()))))
        }
        "true" | "True" => Some(LiteralValue::Constant("true")),
        "false" | "False" => Some(LiteralValue::Constant("false")),
        "boolean_literal" if node.text() == "true" => Some(LiteralValue::Constant("true")),
        "boolean_literal" => Some(LiteralValue::Constant("false")),
        "none" | "null" | "nil" | "undefined" => Some(LiteralValue::Constant("null")),
        _ => None,
    }
}

/// Whether a number is the operand of a minus that has no left operand.
fn has_minus_before(node: NodeRef<'_>) -> bool {
    let Some(parent) = node.parent() else { return false };
    match parent.kind() {
        "unary_operator" | "unary_expression" => {
            parent.all_children().next().is_some_and(|first| first.text() == "-")
        }
        // The tokens of a Rust macro have no structure.
        "token_tree" => {
            let text = parent.source().get(parent.start()..node.start()).unwrap_or_default();
            let Some(before) = text.trim_end().strip_suffix('-') else { return false };
            before.trim_end().ends_with(['(', '[', '{', ',', '=', '<', '>', '&', '|', ';'])
        }
        _ => false,
    }
}

/// Returns a number in decimal, without digit separators, suffixes and a useless fraction.
fn plain_number(text: &str) -> String {
    let lower: String = text.chars().filter(|c| *c != '_').collect::<String>().to_lowercase();
    for (prefix, radix) in [("0x", 16), ("0o", 8), ("0b", 2)] {
        if let Some(digits) = lower.strip_prefix(prefix) {
            let digits = without_suffix(digits, radix == 16);
            return u128::from_str_radix(digits, radix)
                .map_or_else(|_| lower.clone(), |value| value.to_string());
        }
    }
    let digits = without_suffix(&lower, false);
    if let Ok(value) = digits.parse::<u128>() {
        return value.to_string();
    }
    digits.parse::<f64>().map_or_else(|_| digits.to_owned(), |value| value.to_string())
}

/// Cuts the type of a Rust number, the `n` of a big integer, and the `j`, `i` or `l` of others.
fn without_suffix(digits: &str, is_hex: bool) -> &str {
    let types = ["i128", "u128", "isize", "usize", "i64", "u64", "i32", "u32", "i16", "u16"];
    for suffix in types.into_iter().chain(["i8", "u8"]) {
        if let Some(rest) = digits.strip_suffix(suffix) {
            return rest;
        }
    }
    if is_hex {
        return digits.strip_suffix('n').unwrap_or(digits);
    }
    let floats = ["f64", "f32"].into_iter().find_map(|suffix| digits.strip_suffix(suffix));
    floats.unwrap_or(digits).trim_end_matches(['n', 'l', 'j', 'i'])
}

fn is_string(kind: &str) -> bool {
    matches!(
        kind,
        "string"
            | "string_literal"
            | "raw_string_literal"
            | "interpreted_string_literal"
            | "template_string"
            | "char_literal"
            | "rune_literal"
    )
}

/// Returns the content of a string without its quotes and escapes, or nothing if it has variable parts.
pub(crate) fn string_content(node: NodeRef<'_>) -> Option<String> {
    let has_parts =
        |child: NodeRef<'_>| matches!(child.kind(), "interpolation" | "template_substitution");
    if !is_string(node.kind()) || node.all_children().any(has_parts) {
        return None;
    }
    let text = node.text();
    let open = text.find(['"', '\'', '`'])?;
    let (prefix, quoted) = text.split_at(open);
    let is_raw = prefix.contains(['r', 'R']) || node.kind() == "raw_string_literal";
    let quotes: &str = match quoted.as_bytes() {
        [b'"', b'"', b'"', ..] if node.kind() == "string" && quoted.len() >= 6 => "\"\"\"",
        [b'\'', b'\'', b'\'', ..] if node.kind() == "string" && quoted.len() >= 6 => "'''",
        _ => quoted.get(..1)?,
    };
    let content = quoted.strip_prefix(quotes)?.trim_end_matches('#').strip_suffix(quotes)?;
    Some(if is_raw { content.to_owned() } else { unescaped(content) })
}

/// Resolves the escapes that the languages share. An unknown escape is kept as it is.
fn unescaped(content: &str) -> String {
    let mut text = String::with_capacity(content.len());
    let mut rest = content.chars();
    while let Some(char) = rest.next() {
        if char != '\\' {
            text.push(char);
            continue;
        }
        let before = rest.clone();
        let code = match rest.next() {
            Some('n') => Some('\n'),
            Some('t') => Some('\t'),
            Some('r') => Some('\r'),
            Some('0') => Some('\0'),
            Some('a') => Some('\x07'),
            Some('b') => Some('\x08'),
            Some('f') => Some('\x0c'),
            Some('v') => Some('\x0b'),
            Some('\n') => continue,
            Some('x') => hex_code(&mut rest, 2),
            Some('u') => hex_code(&mut rest, 4),
            Some('U') => hex_code(&mut rest, 8),
            Some(quote @ ('\\' | '"' | '\'' | '`' | '/' | '$')) => Some(quote),
            _ => None,
        };
        text.push(code.unwrap_or('\\'));
        if code.is_none() {
            rest = before;
        }
    }
    text
}

/// Reads a number of hexadecimal digits, or digits in braces.
fn hex_code(rest: &mut std::str::Chars<'_>, digits: usize) -> Option<char> {
    let text = rest.as_str();
    let (digits, end) = match text.strip_prefix('{') {
        Some(braced) => {
            let (digits, _) = braced.split_once('}')?;
            (digits, digits.len() + 2)
        }
        None => (text.get(..digits)?, digits),
    };
    let code = char::from_u32(u32::from_str_radix(digits, 16).ok()?)?;
    *rest = text.get(end..)?.chars();
    Some(code)
}
