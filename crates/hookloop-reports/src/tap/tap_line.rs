//! The kinds of lines in TAP.

use crate::sink::title;

/// The directive of a test point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TapDirective {
    Skip,
    Todo,
}

/// A line `ok` or `not ok`.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct TestPoint {
    pub(super) is_ok: bool,
    pub(super) number: Option<u64>,
    /// The description without directives. May end with `{`.
    pub(super) description: String,
    pub(super) directive: Option<TapDirective>,
    pub(super) ms: Option<f64>,
    /// Whether the line ends with ` {`, which may begin a block of subtests.
    pub(super) opens_block: bool,
}

/// One line without its indentation.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum TapLine<'a> {
    Version,
    Plan(u64),
    Point(TestPoint),
    BailOut,
    YamlStart,
    /// `# Subtest: name`
    Subtest(String),
    Comment(&'a str),
    BlockEnd,
    Other,
}

impl<'a> TapLine<'a> {
    pub(super) fn of(line: &'a str) -> TapLine<'a> {
        if let Some(comment) = line.strip_prefix('#') {
            return match comment.trim_start().strip_prefix("Subtest:") {
                Some(name) => TapLine::Subtest(unescaped(name.trim())),
                None => TapLine::Comment(comment),
            };
        }
        match line {
            "---" => return TapLine::YamlStart,
            "}" => return TapLine::BlockEnd,
            _ if line.starts_with("Bail out!") => return TapLine::BailOut,
            _ => {}
        }
        if is_version(line) {
            return TapLine::Version;
        }
        if let Some(number) = plan(line) {
            return TapLine::Plan(number);
        }
        point(line).map_or(TapLine::Other, TapLine::Point)
    }
}

pub(super) fn is_version(line: &str) -> bool {
    let number = line.strip_prefix("TAP version ").map(str::trim_end);
    number.is_some_and(|number| !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()))
}

/// Returns the number of tests of a plan `1..N`.
pub(super) fn plan(line: &str) -> Option<u64> {
    let rest = line.strip_prefix("1..")?;
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    let (number, after) = rest.split_at(digits);
    let is_end = after.trim().is_empty() || after.trim_start().starts_with('#');
    // A number that is too large promises more tests than can run.
    (is_end && digits > 0).then(|| number.parse().unwrap_or(u64::MAX))
}

fn point(line: &str) -> Option<TestPoint> {
    let (is_ok, rest) = match line.strip_prefix("not ok") {
        Some(rest) => (false, rest),
        None => (true, line.strip_prefix("ok")?),
    };
    if !rest.is_empty() && !rest.starts_with([' ', '\t', '#']) {
        return None;
    }
    let (number, rest) = leading_number(rest.trim());
    let rest = match rest.strip_prefix('-') {
        Some(after) if after.is_empty() || after.starts_with([' ', '\t']) => after.trim_start(),
        _ => rest,
    };
    let bare = rest.strip_suffix('{').filter(|bare| bare.is_empty() || bare.ends_with(' '));
    let suffix = PointSuffix::of(bare.unwrap_or(rest));
    Some(TestPoint {
        is_ok,
        number,
        description: unescaped(suffix.description),
        directive: suffix.directive,
        ms: suffix.ms,
        opens_block: bare.is_some(),
    })
}

/// Splits the number of a test point off.
fn leading_number(rest: &str) -> (Option<u64>, &str) {
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    let is_number = matches!(rest.as_bytes().get(digits), None | Some(b' ' | b'\t' | b'#'));
    let (number, after) = rest.split_at(if is_number { digits } else { 0 });
    (number.parse().ok(), after.trim_start())
}

/// The parts of a test point after its description: `# SKIP reason`, `# TODO`, `# time=1.5ms`.
struct PointSuffix<'a> {
    description: &'a str,
    directive: Option<TapDirective>,
    ms: Option<f64>,
}

impl<'a> PointSuffix<'a> {
    fn of(text: &'a str) -> PointSuffix<'a> {
        let mut found = PointSuffix { description: text.trim(), directive: None, ms: None };
        let mut end = text.len();
        for (at, _) in text.match_indices('#') {
            if text[..at].ends_with(|before: char| !before.is_whitespace()) {
                continue;
            }
            let tail = text[at + 1..].trim_start();
            let word_end = tail.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(tail.len());
            let directive = match tail[..word_end].to_ascii_lowercase().as_str() {
                "skip" | "skipped" | "skipping" => Some(TapDirective::Skip),
                "todo" => Some(TapDirective::Todo),
                _ => None,
            };
            let ms = tail.strip_prefix("time=").and_then(leading_ms);
            if directive.is_some() || ms.is_some() {
                end = end.min(at);
                found.directive = found.directive.or(directive);
                found.ms = found.ms.or(ms);
            }
        }
        found.description = text[..end].trim();
        found
    }
}

/// Returns the number of a text such as `1.5ms`.
fn leading_ms(text: &str) -> Option<f64> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.')?;
    let (number, unit) = text.split_at(end);
    number.parse().ok().filter(|_| unit.starts_with("ms"))
}

/// Returns a title without the backslashes before `#` and `\`.
fn unescaped(text: &str) -> String {
    let text = title(text);
    let mut plain = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(char) = chars.next() {
        let is_escape = char == '\\' && matches!(chars.peek(), Some('#' | '\\'));
        plain.push(if is_escape { chars.next().unwrap_or(char) } else { char });
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(line: &str, expected: Option<(bool, &str, Option<TapDirective>)>) {
        let found = match TapLine::of(line) {
            TapLine::Point(point) => Some((point.is_ok, point.description, point.directive)),
            _ => None,
        };
        let found =
            found.as_ref().map(|(is_ok, text, directive)| (*is_ok, text.as_str(), *directive));
        assert_eq!(found, expected, "{line}");
    }

    #[test]
    fn test_points_have_descriptions_without_directives() {
        let skip = Some(TapDirective::Skip);
        let todo = Some(TapDirective::Todo);
        check("ok", Some((true, "", None)));
        check("not ok", Some((false, "", None)));
        check("ok 1", Some((true, "", None)));
        check("ok 1 - a b", Some((true, "a b", None)));
        check("ok 1 a", Some((true, "a", None)));
        check("ok - 1st", Some((true, "1st", None)));
        check("ok 1st", Some((true, "1st", None)));
        check("ok 1 - -a", Some((true, "-a", None)));
        check("ok 1 -a", Some((true, "-a", None)));
        check("ok 1 - a # SKIP no #2", Some((true, "a", skip)));
        check("ok 3 # skip not now", Some((true, "", skip)));
        check("ok 3 # Skipped: x", Some((true, "", skip)));
        check("not ok 4 - b # TODO later", Some((false, "b", todo)));
        check("ok 4 - issue # 12", Some((true, "issue # 12", None)));
        check("ok 4 - c # todos", Some((true, "c # todos", None)));
        check("ok 4 - a#todo", Some((true, "a#todo", None)));
        check(r"ok 4 - d \# skip \\ e\f", Some((true, r"d # skip \ e\f", None)));
        check("not ok 2 - s # time=13.81ms {", Some((false, "s", None)));
        check("ok 2 - s # SKIP # time=1ms", Some((true, "s", skip)));
        check("okay", None);
        check("not okay", None);
        check("ok: fine", None);
    }

    #[test]
    fn other_lines_are_told_apart() {
        for (line, expected) in [
            ("TAP version 14", TapLine::Version),
            ("TAP version", TapLine::Other),
            ("1..3", TapLine::Plan(3)),
            ("1..0 # SKIP no database", TapLine::Plan(0)),
            ("1..99999999999999999999", TapLine::Plan(u64::MAX)),
            ("1..", TapLine::Other),
            ("1..3 pages", TapLine::Other),
            ("Bail out! no database", TapLine::BailOut),
            ("# Subtest: a \\# b", TapLine::Subtest("a # b".to_owned())),
            ("# a", TapLine::Comment(" a")),
            ("---", TapLine::YamlStart),
            ("}", TapLine::BlockEnd),
            ("pragma +strict", TapLine::Other),
        ] {
            assert_eq!(TapLine::of(line), expected, "{line}");
        }
    }

    #[test]
    fn a_time_after_the_description_is_read() {
        let TapLine::Point(point) = TapLine::of("ok 1 - a # time=2.27ms") else { panic!() };
        assert_eq!(point.ms, Some(2.27));
        assert!(!point.opens_block);
    }
}
