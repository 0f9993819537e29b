//! Writes an imported configuration as YAML.

use serde_json::{Map, Value};

/// Words that YAML does not read as text.
const NOT_TEXT: [&str; 10] = ["true", "false", "null", "yes", "no", "on", "off", "y", "n", "nan"];

/// A project's file with these sections.
pub(super) fn text(sections: &Map<String, Value>) -> String {
    let mut text = "version: 1\n".to_owned();
    members(&mut text, sections, 0);
    text
}

pub(super) fn members(text: &mut String, fields: &Map<String, Value>, indent: usize) {
    for (key, value) in fields {
        text.push_str(&format!("{:indent$}{}:", "", scalar(key)));
        put(text, value, indent + 2);
    }
}

/// Writes the value of a key.
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
            text.push_str(&format!(" [{}]\n", items.join(", ")));
        }
        value => {
            text.push_str(&format!(" {}\n", flow(value)));
        }
    }
}

pub(super) fn put_item(text: &mut String, item: &Value, indent: usize) {
    match item {
        Value::Object(fields) if !fields.is_empty() => {
            let mut block = String::new();
            members(&mut block, fields, indent + 2);
            // The first field is on the line of the dash.
            text.push_str(&format!("{:indent$}- {}", "", block.trim_start()));
        }
        item => {
            text.push_str(&format!("{:indent$}- {}\n", "", flow(item)));
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

/// Returns a text as a YAML string: plain if that is unambiguous, else quoted.
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

/// Quotes like JSON, and escapes the characters that JSON allows and YAML does not.
fn quoted(text: &str) -> String {
    let mut quoted = String::new();
    for c in Value::from(text).to_string().chars() {
        match c {
            '\u{7f}'..='\u{9f}' | '\u{2028}' | '\u{2029}' | '\u{feff}' => {
                quoted.push_str(&format!("\\u{:04x}", u32::from(c)));
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

    /// Any text is read back unchanged.
    #[test]
    fn written_yaml_is_read_back_unchanged() {
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
                super::super::SourceFile { path: std::path::PathBuf::new(), text: written.clone() };
            let read = source.yaml().unwrap_or_else(|error| panic!("{said:?}: {error}\n{written}"));
            let Value::Object(mut read) = read else { panic!("{written}") };
            assert_eq!(read.shift_remove("version"), Some(json!(1)));
            assert_eq!(Value::Object(read), Value::Object(sections), "{written}");
        }
    }
}
