//! Text that a person is asked to trust, with every deceptive character escaped.
//!
//! Letters of common scripts are shown as they are. These are escaped: controls, characters without a width or with a
//! change of direction, letters that are written from right to left, signs beyond ASCII, and Greek and Cyrillic letters
//! in the place of Latin ones.

use std::ops::RangeInclusive;

/// Latin letters beyond ASCII. The letters for clicks (U+01C0 to U+01C3) look like `|` and `!`.
const LATIN: [RangeInclusive<char>; 3] =
    ['\u{c0}'..='\u{1bf}', '\u{1c4}'..='\u{24f}', '\u{1e00}'..='\u{1eff}'];
/// Letters that look like no Latin ones: Devanagari to Thai, Hiragana, Katakana, Chinese characters, Hangul.
const DISTINCT: [RangeInclusive<char>; 5] = [
    '\u{900}'..='\u{e7f}',
    '\u{3041}'..='\u{30ff}',
    '\u{3400}'..='\u{4dbf}',
    '\u{4e00}'..='\u{9fff}',
    '\u{ac00}'..='\u{d7a3}',
];
/// Characters of these scripts that look like `|`, `/` or `\`.
const LIKE_SIGNS: &str = "丨丿丶ノヽ";
/// Greek and Cyrillic, which share letters with Latin.
const SHARED: RangeInclusive<char> = '\u{370}'..='\u{52f}';
/// The letters that are shared, or nearly so.
const LIKE_LATIN: &str =
    "ΑΒΕΖΗΙΚΜΝΟΡΤΥΧαγικνορτυχϲϳϹϺЅІЈАВЕЗКМНОРСТУХЬабегкмнорстухьѕіјҮүҺһӀӏԁԌԍԚԛԜԝ";

/// A line of text in which every character is seen, as itself or spelled out.
pub(super) fn visible(text: &str) -> String {
    let mut shown = String::new();
    for word in text.split_inclusive(|c: char| !is_of_word(c)) {
        let is_latin = word.chars().any(|c| c.is_ascii_alphabetic());
        let letters = || word.chars().filter(|c| c.is_alphabetic());
        let looks_latin = is_latin || letters().all(|c| LIKE_LATIN.contains(c));
        for c in word.chars() {
            match c {
                ' '..='~' => shown.push(c),
                c if is_letter(c) || SHARED.contains(&c) && c.is_alphabetic() && !looks_latin => {
                    shown.push(c);
                }
                c => shown.extend(c.escape_default()),
            }
        }
    }
    shown
}

/// Whether a character is a part of a word.
fn is_of_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Whether a letter is visible, and can't be mistaken for another.
fn is_letter(c: char) -> bool {
    let is_of = |scripts: &[RangeInclusive<char>]| scripts.iter().any(|range| range.contains(&c));
    c.is_alphabetic() && (is_of(&LATIN) || is_of(&DISTINCT)) && !LIKE_SIGNS.contains(c)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lookalike_and_invisible_characters_are_shown_as_escapes() {
        let check = |text: &str, expected: &str| assert_eq!(visible(text), expected, "{text:?}");
        check("echo \"déjà vu, Größe, żółć\"", "echo \"déjà vu, Größe, żółć\"");
        check("echo проверка κλειδί 検査 테스트", "echo проверка κλειδί 検査 테스트");
        check("testを実行", "testを実行");
        check("path\\to 'x'", "path\\to 'x'");
        // In the place of Latin letters.
        check("\u{441}url", "\\u{441}url");
        check("\u{441}\u{43e}\u{440}", "\\u{441}\\u{43e}\\u{440}");
        check("вид_\u{430}b", "\\u{432}\\u{438}\\u{434}_\\u{430}b");
        check("x \u{1c0} sh \u{4e28} sh", "x \\u{1c0} sh \\u{4e28} sh");
        check("\u{ff41}\u{2215}\u{2014}", "\\u{ff41}\\u{2215}\\u{2014}");
        // Not seen, or turning the direction.
        check("a\u{301}\u{200b}\u{202e}", "a\\u{301}\\u{200b}\\u{202e}");
        check("\u{3164}\u{a0}", "\\u{3164}\\u{a0}");
        check("\u{5d0} \u{627}\t\u{1b}[1m", "\\u{5d0} \\u{627}\\t\\u{1b}[1m");
    }
}
