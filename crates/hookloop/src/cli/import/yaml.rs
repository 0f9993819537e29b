//! How a configuration that was taken over is written.

use std::fmt::Write as _;

use serde_json::{Map, Value};

/// Words that YAML takes for something else than a text.
const NOT_TEXT: [&str; 10] = ["true", "false", "null", "yes", "no", "on", "off", "y", "n", "nan"];

/// A project's file with these sections.
pub(super) fn text(sections: &Map<String, Value>) -> String {
    let mut text = "version: 1\n".to_owned();
    members(&mut text, sections, 0);
    text
}

pub(super) fn members(text: &mut String, fields: &Map<String, Value>, indent: usize) {
    for (key, value) in fields {
        let _ = write!(text, "{:indent$}{}:", "", scalar(key));
        put(text, value, indent + 2);
    }
}

/// What follows a key.
fn put(text: &mut String, value: &Value, indent: usize) {
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            text.push('\n');
            members(text, fields, indent);
        }
        Value::Array(items) if items.iter().any(Value::is_object) => {
            text.push('\n');
            items.iter().for_each(|item| put_item(text, item, indent));
        }
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(flow).collect();
            let _ = writeln!(text, " [{}]", items.join(", "));
        }
        value => {
            let _ = writeln!(text, " {}", flow(value));
        }
    }
}

pub(super) fn put_item(text: &mut String, item: &Value, indent: usize) {
    match item {
        Value::Object(fields) if !fields.is_empty() => {
            let mut block = String::new();
            members(&mut block, fields, indent + 2);
            // The first field is on the line of the dash.
            let _ = write!(text, "{:indent$}- {}", "", block.trim_start());
        }
        item => {
            let _ = writeln!(text, "{:indent$}- {}", "", flow(item));
        }
    }
}

fn flow(value: &Value) -> String {
    match value {
        Value::String(text) => scalar(text),
        // JSON is YAML.
        value => value.to_string(),
    }
}

/// A text as YAML takes it for one: as it is where that is plain, else as JSON writes it.
fn scalar(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || " _-./$".contains(c);
    // `.inf` is a number; a path is not.
    let is_path = ["/", "./", "../"].iter().any(|start| text.starts_with(start));
    let is_length =
        text.starts_with(|c: char| c.is_ascii_digit()) && text.ends_with(['s', 'm', 'h']);
    let begins = is_path || is_length || text.starts_with(|c: char| c.is_ascii_alphabetic());
    let fits = begins
        && text.chars().all(is_plain)
        && !text.ends_with(' ')
        && text.parse::<f64>().is_err()
        && !NOT_TEXT.contains(&text.to_ascii_lowercase().as_str());
    if fits { text.to_owned() } else { quoted(text) }
}

/// As JSON writes it; and what JSON leaves as it is and YAML does not take, by its number.
fn quoted(text: &str) -> String {
    let mut quoted = String::new();
    for c in Value::from(text).to_string().chars() {
        match c {
            '\u{7f}'..='\u{9f}' | '\u{2028}' | '\u{2029}' | '\u{feff}' => {
                let _ = write!(quoted, "\\u{:04x}", u32::from(c));
            }
            c => quoted.push(c),
        }
    }
    quoted
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Whatever a text holds, it is read as it was.
    #[test]
    fn what_is_written_is_read_as_it_was() {
        let texts = [
            "plain",
            "true",
            "12",
            "12s",
            "1e3",
            ".5",
            "a: b",
            "a #b",
            "- a",
            "'q'",
            "\"",
            "é\u{85}x",
            " lead",
            "tail ",
            "two\nlines",
            "{{x}}",
            "*a",
            "&a",
            "!t",
            "%",
            "@x",
            "`x`",
            "",
            "~",
            "0x1f",
            "no",
            "$HOME/x",
            "./a.sh --b=c",
            "\u{7f}\u{0}",
            "a\tb",
            "?",
            "-",
            "...",
            ".inf",
            "1_000s",
        ];
        for said in texts {
            let sections =
                json!({"limits": {"k": said}, "list": [{said: [said, 1, true]}], "empty": {}});
            let Value::Object(sections) = sections else { panic!() };
            let written = text(&sections);
            let source =
                super::super::Source { path: std::path::PathBuf::new(), text: written.clone() };
            let read = source.yaml().unwrap_or_else(|error| panic!("{said:?}: {error}\n{written}"));
            let Value::Object(mut read) = read else { panic!("{written}") };
            assert_eq!(read.shift_remove("version"), Some(json!(1)));
            assert_eq!(Value::Object(read), Value::Object(sections), "{written}");
        }
    }
}
