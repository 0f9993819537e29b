//! Bounded reading of JSON: lists element by element, texts without valid surrogates, loose numbers.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{
    DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor,
};
use serde::{Deserialize, de};
use serde_json::value::RawValue;

use crate::error::{ReportError, position};

/// Maximum depth of a JSON report.
pub const JSON_DEPTH_MAX: usize = 100;
/// Elements of a short list that are kept, such as the titles above a test.
const SHORT_LIST_MAX: usize = 64;

/// Checks that a JSON text is not nested too deeply. The text may be malformed.
pub(crate) fn check_depth(text: &str) -> Result<(), ReportError> {
    let mut depth = 0_usize;
    let mut is_string = false;
    let mut is_escaped = false;
    for byte in text.bytes() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if is_string => is_escaped = true,
            b'"' => is_string = !is_string,
            _ if is_string => {}
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > JSON_DEPTH_MAX {
            return Err(ReportError::TooDeep { part: "the report", limit: JSON_DEPTH_MAX });
        }
    }
    Ok(())
}

/// Returns the position and the kind of a JSON error in `part`, which is a part of `text`.
pub(crate) fn malformed(text: &str, part: &str, error: &serde_json::Error) -> ReportError {
    let start = (part.as_ptr() as usize).saturating_sub(text.as_ptr() as usize);
    let (first_line, first_column) = position(text, start);
    let line = first_line + error.line().saturating_sub(1);
    let column = match error.line() {
        0 | 1 => first_column + error.column().saturating_sub(1),
        _ => error.column(),
    };
    let reason = match error.classify() {
        serde_json::error::Category::Eof => "the report ends too early",
        serde_json::error::Category::Data => "a JSON value has an unexpected type",
        _ => "JSON syntax error",
    };
    ReportError::Malformed { line, column, reason }
}

/// Reads a whole JSON document.
pub(crate) fn document<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, ReportError> {
    check_depth(text)?;
    serde_json::from_str(text).map_err(|error| malformed(text, text, &error))
}

/// Reads one line of JSON. A line that is no object is `None`: programs print between events.
pub(crate) fn event_line<'a, T: Deserialize<'a>>(
    text: &str,
    line: &'a str,
) -> Result<Option<T>, ReportError> {
    let line = line.trim();
    if !line.starts_with('{') {
        return Ok(None);
    }
    check_depth(line)?;
    serde_json::from_str(line).map(Some).map_err(|error| malformed(text, line, &error))
}

/// Reads the elements of a list one by one, and returns their number.
pub(crate) fn each<'a, T: Deserialize<'a>>(
    text: &str,
    list: &'a RawValue,
    take: impl FnMut(T) -> Result<(), ReportError>,
) -> Result<u64, ReportError> {
    let mut refused = None;
    let elements = ElementReader { take, refused: &mut refused, element: PhantomData };
    let mut reader = serde_json::Deserializer::from_str(list.get());
    let number = elements.deserialize(&mut reader);
    match refused {
        Some(error) => Err(error),
        None => number.map_err(|error| malformed(text, list.get(), &error)),
    }
}

/// Passes each element of a list to a function.
struct ElementReader<'r, F, T> {
    take: F,
    /// The error of the function.
    refused: &'r mut Option<ReportError>,
    element: PhantomData<T>,
}

impl<'de, F, T> DeserializeSeed<'de> for ElementReader<'_, F, T>
where
    F: FnMut(T) -> Result<(), ReportError>,
    T: Deserialize<'de>,
{
    type Value = u64;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<u64, D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de, F, T> Visitor<'de> for ElementReader<'_, F, T>
where
    F: FnMut(T) -> Result<(), ReportError>,
    T: Deserialize<'de>,
{
    type Value = u64;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut list: A) -> Result<u64, A::Error> {
        let mut number = 0;
        while let Some(element) = list.next_element()? {
            number += 1;
            if let Err(error) = (self.take)(element) {
                *self.refused = Some(error);
                return Err(A::Error::custom("refused"));
            }
        }
        Ok(number)
    }
}

/// A text. Surrogates without a partner are replaced.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct LossyText(pub(crate) String);

impl<'de> Deserialize<'de> for LossyText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<LossyText, D::Error> {
        deserializer.deserialize_bytes(TextVisitor)
    }
}

struct TextVisitor;

impl Visitor<'_> for TextVisitor {
    type Value = LossyText;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a text")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<LossyText, E> {
        Ok(LossyText(text.to_owned()))
    }

    fn visit_bytes<E: de::Error>(self, bytes: &[u8]) -> Result<LossyText, E> {
        Ok(LossyText(String::from_utf8_lossy(bytes).into_owned()))
    }
}

/// Returns the text, or an empty one.
pub(crate) fn text_or_empty(text: &Option<LossyText>) -> &str {
    text.as_ref().map_or("", |text| &text.0)
}

/// The first elements of a list of texts. `null` is an empty list.
#[derive(Debug, Default)]
pub(crate) struct ShortList(pub(crate) Vec<String>);

impl<'de> Deserialize<'de> for ShortList {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<ShortList, D::Error> {
        deserializer.deserialize_any(ShortListVisitor)
    }
}

struct ShortListVisitor;

impl<'de> Visitor<'de> for ShortListVisitor {
    type Value = ShortList;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a list of texts")
    }

    fn visit_unit<E: de::Error>(self) -> Result<ShortList, E> {
        Ok(ShortList::default())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<ShortList, A::Error> {
        let mut kept = Vec::new();
        while let Some(LossyText(text)) = list.next_element()? {
            kept.push(text);
            if kept.len() == SHORT_LIST_MAX {
                while list.next_element::<IgnoredAny>()?.is_some() {}
                break;
            }
        }
        Ok(ShortList(kept))
    }
}

/// A number, also if it is written as a text such as `1.5s`. Other values are no number.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct LooseNumber(pub(crate) Option<f64>);

impl<'de> Deserialize<'de> for LooseNumber {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<LooseNumber, D::Error> {
        deserializer.deserialize_any(NumberVisitor)
    }
}

struct NumberVisitor;

impl<'de> Visitor<'de> for NumberVisitor {
    type Value = LooseNumber;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a number")
    }

    fn visit_f64<E: de::Error>(self, number: f64) -> Result<LooseNumber, E> {
        Ok(LooseNumber(Some(number)))
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<LooseNumber, E> {
        Ok(LooseNumber(Some(number as f64)))
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<LooseNumber, E> {
        Ok(LooseNumber(Some(number as f64)))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<LooseNumber, E> {
        Ok(LooseNumber(text.trim_end_matches('s').parse().ok()))
    }

    fn visit_bool<E: de::Error>(self, _: bool) -> Result<LooseNumber, E> {
        Ok(LooseNumber(None))
    }

    fn visit_unit<E: de::Error>(self) -> Result<LooseNumber, E> {
        Ok(LooseNumber(None))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<LooseNumber, A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(LooseNumber(None))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<LooseNumber, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(LooseNumber(None))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn brackets_in_strings_have_no_depth() {
        let deep = "[".repeat(JSON_DEPTH_MAX);
        assert!(check_depth(&deep).is_ok());
        assert!(check_depth(&format!("{deep}[")).is_err());
        assert!(check_depth(&format!("{deep}\"[\\\"[[\"")).is_ok());
        assert!(check_depth(&"{}".repeat(1000)).is_ok());
    }

    #[test]
    fn an_error_in_a_part_has_the_position_in_the_document() {
        #[derive(Deserialize)]
        struct Part<'a> {
            #[serde(borrow)]
            list: &'a RawValue,
        }
        let text = "{\n \"list\": [1, 2,\n  \"x\"]}";
        let part: Part<'_> = document(text).unwrap();
        let mut taken = Vec::new();
        let error = each(text, part.list, |number: u8| {
            taken.push(number);
            Ok(())
        });
        let error = error.unwrap_err().to_string();
        assert_eq!(error, "malformed at line 3, column 5: a JSON value has an unexpected type");
        assert_eq!(taken, [1, 2]);
    }

    #[test]
    fn loose_values_are_read() {
        let text = |json| serde_json::from_str::<LossyText>(json).map(|text| text.0).unwrap();
        assert_eq!(text(r#""a\n\u00e9""#), "a\né");
        assert!(text(r#""a\ud800b""#).ends_with('b'));
        let number = |json| serde_json::from_str::<LooseNumber>(json).unwrap().0;
        assert_eq!(number("1.5"), Some(1.5));
        assert_eq!(number("\"0.25s\""), Some(0.25));
        for none in ["null", "true", "[1]", "{\"a\": 1}", "\"x\""] {
            assert_eq!(number(none), None, "{none}");
        }
        let long = format!("[{}\"z\"]", "\"a\",".repeat(SHORT_LIST_MAX));
        assert_eq!(serde_json::from_str::<ShortList>(&long).unwrap().0.len(), SHORT_LIST_MAX);
        assert!(serde_json::from_str::<ShortList>("null").unwrap().0.is_empty());
    }
}
