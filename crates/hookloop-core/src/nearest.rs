//! Suggests the known name that a user probably meant.

/// The similarity, from 0 to 1, from which one name is suggested for another.
const SIMILARITY_MIN: f64 = 0.8;

/// Returns the known name that is most like `name`, if one is like it.
///
/// A name that is one word of a longer one counts as well: `cost` for `max_cost`.
fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let likeness = |other: &str| {
        let is_word_of = other.split('_').any(|word| word == name);
        if is_word_of { 1.0 } else { strsim::jaro(name, other) }
    };
    let alike = known.into_iter().map(|other| (likeness(other), other));
    let alike = alike.filter(|(likeness, _)| *likeness >= SIMILARITY_MIN);
    alike.max_by(|(a, _), (b, _)| a.total_cmp(b)).map(|(_, other)| other)
}

/// Maximum changes of single characters between a mistyped name and the meant one.
const TYPING_ERRORS_MAX: usize = 2;

/// Whether `name` is probably `known` with typing errors: few changes, and in less than half of it.
pub fn is_mistyped(name: &str, known: &str) -> bool {
    let distance = strsim::osa_distance(name, known);
    let length = name.chars().count().max(known.chars().count());
    distance <= TYPING_ERRORS_MAX && distance * 2 < length
}

/// Returns the question whether the nearest name was meant, to put behind an error; empty if there is none.
pub fn did_you_mean<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    nearest(name, known).map_or(String::new(), |other| format!("; did you mean `{other}`?"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_similar_name_is_found() {
        let known = ["stop", "stop_when", "session_end", "max_cost"];
        assert_eq!(nearest("stopp", known), Some("stop"));
        assert_eq!(nearest("sesion_end", known), Some("session_end"));
        assert_eq!(nearest("cost", known), Some("max_cost"));
        assert_eq!(nearest("unrelated", known), None);
        assert_eq!(did_you_mean("stopp", known), "; did you mean `stop`?");
    }

    #[test]
    fn only_few_changed_characters_are_a_typing_error() {
        let check = |name: &str, known: &str, expected: bool| {
            assert_eq!(is_mistyped(name, known), expected, "{name} for {known}");
        };
        check("ad", "add", true);
        check("lst", "list", true);
        check("stauts", "status", true);
        check("start", "status", false);
        check("list", "dispatch", false);
        check("lst", "stop", false);
    }
}
