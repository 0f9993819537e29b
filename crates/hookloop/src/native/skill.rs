//! The text that teaches an agent the loop's rules, in the form that all of them read: a skill.

/// The file, under the directory of an agent's settings.
pub(crate) const PATH: &str = "skills/hookloop/SKILL.md";
pub(crate) const TEXT: &str = include_str!("skill.md");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_skill_text_is_short_and_contains_no_promise() {
        assert!(TEXT.lines().count() <= 60);
        assert!(TEXT.starts_with("---\nname: hookloop\ndescription: "));
        assert_eq!(hookloop_core::promise::promises(TEXT), []);
        // Also if an agent repeats a part of it.
        for start in TEXT.lines().enumerate().map(|(at, _)| at) {
            let part: Vec<&str> = TEXT.lines().skip(start).collect();
            assert_eq!(hookloop_core::promise::promises(&part.join("\n")), [], "from line {start}");
        }
    }
}
