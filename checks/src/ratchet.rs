//! Figures that are above their bar today and may only fall.
//!
//! `checks/ratchets.txt` has a line for each: `KIND NAME NUMBER`. A figure above its bar needs a
//! line, and may not exceed its number. A line without such a figure must be removed. `checks renew`
//! rewrites the file, and refuses if the sum of a kind would rise.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::CheckError;

/// The figures of one rule.
#[derive(Clone, Debug)]
pub struct RuleFigures {
    pub kind: &'static str,
    pub bar: u64,
    pub figures: BTreeMap<String, u64>,
}

/// The figures that are allowed above their bar, by kind and name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ratchets {
    allowed: BTreeMap<(String, String), u64>,
}

const HEAD: &str = "# Figures above their bar, which may only fall. Written by `cargo run -p hookloop-checks -- renew`.\n";

impl Ratchets {
    pub fn read(path: &Path) -> Result<Ratchets, CheckError> {
        let text = fs::read_to_string(path)
            .map_err(|source| CheckError::Read { path: path.to_owned(), source })?;
        let mut allowed = BTreeMap::new();
        for (at, line) in text.lines().enumerate() {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let mut words = line.split(' ');
            let parsed = (words.next(), words.next(), words.next().map(str::parse), words.next());
            let (Some(kind), Some(name), Some(Ok(number)), None) = parsed else {
                return Err(CheckError::RatchetLine { path: path.to_owned(), line: at + 1 });
            };
            allowed.insert((kind.to_owned(), name.to_owned()), number);
        }
        Ok(Ratchets { allowed })
    }

    /// Returns the problems with the figures of one rule; none if all hold.
    pub fn compare(&self, rule: &RuleFigures) -> Vec<String> {
        let mut problems = Vec::new();
        for (name, figure) in rule.figures.iter().filter(|(_, figure)| **figure > rule.bar) {
            match self.allowed.get(&(rule.kind.to_owned(), name.clone())) {
                None => problems.push(format!(
                    "{} {name}: {figure} is above the bar of {}",
                    rule.kind, rule.bar
                )),
                Some(allowed) if figure > allowed => problems.push(format!(
                    "{} {name}: {figure} is above {allowed}, which may only fall",
                    rule.kind
                )),
                Some(_) => {}
            }
        }
        for ((kind, name), _) in self.allowed.iter().filter(|((kind, _), _)| kind == rule.kind) {
            let today = rule.figures.get(name).copied().unwrap_or_default();
            if today <= rule.bar {
                problems.push(format!(
                    "{kind} {name}: {today} is within the bar of {}: `cargo run -p hookloop-checks -- renew` removes its line",
                    rule.bar
                ));
            }
        }
        problems
    }

    /// Returns the ratchets for the current figures. Refuses if the sum of a kind rises.
    pub fn renew(&self, rules: &[RuleFigures]) -> Result<Ratchets, CheckError> {
        let mut renewed = Ratchets::default();
        for rule in rules {
            for (name, figure) in rule.figures.iter().filter(|(_, figure)| **figure > rule.bar) {
                renewed.allowed.insert((rule.kind.to_owned(), name.clone()), *figure);
            }
            let before = self.sum(rule.kind);
            let today = renewed.sum(rule.kind);
            if today > before {
                return Err(CheckError::RatchetRises { kind: rule.kind.to_owned(), before, today });
            }
        }
        Ok(renewed)
    }

    fn sum(&self, kind: &str) -> u64 {
        let of_kind = self.allowed.iter().filter(|((known, _), _)| known == kind);
        of_kind.map(|(_, number)| number).sum()
    }

    pub fn write(&self, path: &Path) -> Result<(), CheckError> {
        let mut text = HEAD.to_owned();
        for ((kind, name), number) in &self.allowed {
            text.push_str(&format!("{kind} {name} {number}\n"));
        }
        fs::write(path, text).map_err(|source| CheckError::Read { path: path.to_owned(), source })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(figures: &[(&str, u64)]) -> RuleFigures {
        let figures = figures.iter().map(|(name, figure)| ((*name).to_owned(), *figure)).collect();
        RuleFigures { kind: "file", bar: 700, figures }
    }

    fn allowed(lines: &[(&str, u64)]) -> Ratchets {
        let key = |name: &str| ("file".to_owned(), name.to_owned());
        Ratchets { allowed: lines.iter().map(|(name, number)| (key(name), *number)).collect() }
    }

    #[test]
    fn a_figure_may_fall_and_not_rise() {
        let ratchets = allowed(&[("a.rs", 800)]);
        assert_eq!(ratchets.compare(&rule(&[("a.rs", 750)])), [""; 0]);
        let risen = ratchets.compare(&rule(&[("a.rs", 801)]));
        assert_eq!(risen, ["file a.rs: 801 is above 800, which may only fall"]);
        let new = ratchets.compare(&rule(&[("a.rs", 800), ("b.rs", 701)]));
        assert_eq!(new, ["file b.rs: 701 is above the bar of 700"]);
    }

    #[test]
    fn an_unneeded_ratchet_line_must_be_removed() {
        let ratchets = allowed(&[("a.rs", 800), ("gone.rs", 900)]);
        assert_eq!(ratchets.compare(&rule(&[("a.rs", 700)])).len(), 2);
        let renewed = ratchets.renew(&[rule(&[("a.rs", 700)])]).unwrap();
        assert_eq!(renewed, Ratchets::default());
    }

    #[test]
    fn a_renewed_ratchet_may_move_between_files_but_not_rise() {
        let ratchets = allowed(&[("a.rs", 800)]);
        let moved = ratchets.renew(&[rule(&[("b.rs", 800)])]).unwrap();
        assert_eq!(moved, allowed(&[("b.rs", 800)]));
        let risen = ratchets.renew(&[rule(&[("b.rs", 801)])]);
        assert!(matches!(risen, Err(CheckError::RatchetRises { before: 800, today: 801, .. })));
    }

    #[test]
    fn ratchets_are_read_back_unchanged() {
        let path = std::env::temp_dir().join(format!("ratchets-{}", std::process::id()));
        let ratchets = allowed(&[("a.rs", 800), ("b.rs", 900)]);
        ratchets.write(&path).unwrap();
        assert_eq!(Ratchets::read(&path).unwrap(), ratchets);
        fs::write(&path, "file a.rs many\n").unwrap();
        assert!(matches!(Ratchets::read(&path), Err(CheckError::RatchetLine { line: 1, .. })));
        fs::remove_file(&path).unwrap();
    }
}
