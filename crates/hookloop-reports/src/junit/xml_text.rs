//! Character references and the predefined entities of XML.

/// Bytes of the longest reference that is read: `&#x0010FFFF;` has 10 between `&` and `;`.
const REFERENCE_MAX: usize = 16;

/// Returns the character of a reference without `&` and `;`, or `None` for another entity.
pub(super) fn resolved(name: &str) -> Option<char> {
    match name {
        "lt" => return Some('<'),
        "gt" => return Some('>'),
        "amp" => return Some('&'),
        "quot" => return Some('"'),
        "apos" => return Some('\''),
        _ => {}
    }
    let number = name.strip_prefix('#').filter(|number| number.len() <= REFERENCE_MAX)?;
    let code = match number.strip_prefix(['x', 'X']) {
        Some(digits) => u32::from_str_radix(digits, 16),
        None => number.parse(),
    };
    // A character that XML does not allow is no reason to refuse a report.
    Some(code.ok().and_then(char::from_u32).unwrap_or(char::REPLACEMENT_CHARACTER))
}

/// Returns the text of an attribute, or `None` if it has an unknown entity.
pub(super) fn unescaped(raw: &str) -> Option<String> {
    let mut text = String::with_capacity(raw.len());
    let mut rest = raw;
    while let Some((before, after)) = rest.split_once('&') {
        text.push_str(before);
        let (name, remaining) = after.split_once(';')?;
        text.push(resolved(name)?);
        rest = remaining;
    }
    text.push_str(rest);
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_predefined_entities_are_resolved() {
        for (raw, expected) in [
            ("", Some("")),
            ("a &lt;b&gt; &amp;&quot;&apos;", Some("a <b> &\"'")),
            ("&#65;&#x42;&#10;", Some("AB\n")),
            ("&#0;&#xD800;&#99999999999;&#x;", Some("\0\u{fffd}\u{fffd}\u{fffd}")),
            ("&amp;lt;", Some("&lt;")),
            ("&nbsp;", None),
            ("&lol9;", None),
            ("a & b", None),
            ("&", None),
            ("&#123456789012345678901234567890;", None),
        ] {
            assert_eq!(unescaped(raw).as_deref(), expected, "{raw}");
        }
    }
}
