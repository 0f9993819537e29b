//! How much a literal says: whether two sources have it by chance.

/// Maximum weight of a literal.
const WEIGHT_MAX: usize = 32;
/// Minimum characters of a phrase that is no name, and of a number, that hardly occurs by chance.
const SPECIFIC_TEXT_MIN: usize = 6;
const SPECIFIC_DIGITS_MIN: usize = 4;

/// Literals that every program has.
const COMMON: [&str; 8] = ["0", "1", "-1", "2", "10", "100", "1000", "\"\""];

/// Returns the number of significant characters or digits of a spelled literal.
pub(super) fn weight(spelling: &str) -> usize {
    if COMMON.contains(&spelling) || is_constant(spelling) {
        return 0;
    }
    let length = match content(spelling) {
        Some(text) => text.trim().chars().count(),
        None => digits(spelling),
    };
    length.min(WEIGHT_MAX)
}

/// Whether a literal is specific: no word, name or pattern that sources have for good reasons.
pub(super) fn is_specific(spelling: &str) -> bool {
    match content(spelling) {
        Some(text) => {
            let is_word =
                |char: char| char.is_alphanumeric() || "_-./:;=%+*@#$<>{}[]()".contains(char);
            text.chars().count() >= SPECIFIC_TEXT_MIN && !text.trim().chars().all(is_word)
        }
        None => !is_constant(spelling) && digits(spelling) >= SPECIFIC_DIGITS_MIN,
    }
}

fn is_constant(spelling: &str) -> bool {
    matches!(spelling, "true" | "false" | "null")
}

fn content(spelling: &str) -> Option<&str> {
    spelling.strip_prefix('"')?.strip_suffix('"')
}

/// Counts the digits of a number between its leading and trailing zeros.
fn digits(number: &str) -> usize {
    let digits: String = number.chars().filter(char::is_ascii_digit).collect();
    digits.trim_matches('0').len()
}
