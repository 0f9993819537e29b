//! Which line of a list is chosen, and which lines there are.

/// A list whose lines have keys. The selected line stays selected while others come and go.
#[derive(Clone, Debug, Default)]
pub(super) struct SelectList {
    /// The text that lines must contain.
    pub(super) filter: String,
    /// Lines that are shown, by their place in all of them.
    lines: Vec<usize>,
    keys: Vec<Option<String>>,
    at: usize,
}

/// How far to move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ListMotion {
    By(isize),
    First,
    Last,
}

impl SelectList {
    /// Replaces the lines: the key of each (none for a line that can't be selected), and the text that a filter
    /// searches.
    pub(super) fn fill<'t>(
        &mut self,
        lines: impl Iterator<Item = (Option<String>, &'t str, &'t str)>,
    ) {
        let chosen = self.key().map(str::to_owned);
        let wanted = self.filter.to_lowercase();
        self.lines = Vec::new();
        self.keys = Vec::new();
        for (place, (key, one, other)) in lines.enumerate() {
            let is_shown = wanted.is_empty()
                || key.as_ref().is_some_and(|key| key.to_lowercase().contains(&wanted))
                || key.is_some() && has(one, &wanted)
                || key.is_some() && has(other, &wanted);
            if is_shown {
                self.lines.push(place);
                self.keys.push(key);
            }
        }
        let again = chosen.and_then(|chosen| {
            self.keys.iter().position(|key| key.as_deref() == Some(chosen.as_str()))
        });
        self.at = again.unwrap_or(self.at).min(self.keys.len().saturating_sub(1));
        self.settle(1);
    }

    /// Moves to a line that can be selected, if the current one can't.
    fn settle(&mut self, direction: isize) {
        let is_free = |at: &usize| self.keys.get(*at).is_some_and(Option::is_some);
        let forth = (self.at..self.keys.len()).find(is_free);
        let back = (0..self.at.min(self.keys.len())).rev().find(is_free);
        let found = if direction < 0 { back.or(forth) } else { forth.or(back) };
        if !is_free(&self.at) {
            self.at = found.unwrap_or(0);
        }
    }

    pub(super) fn go(&mut self, motion: ListMotion) {
        let last = self.keys.len().saturating_sub(1);
        let (to, direction) = match motion {
            ListMotion::By(by) => (self.at.saturating_add_signed(by).min(last), by),
            ListMotion::First => (0, 1),
            ListMotion::Last => (last, -1),
        };
        self.at = to;
        self.settle(direction);
    }

    /// The key of the line that is chosen.
    pub(super) fn key(&self) -> Option<&str> {
        self.keys.get(self.at)?.as_deref()
    }

    /// The place of the line that is chosen, in all of them.
    pub(super) fn place(&self) -> Option<usize> {
        self.key()?;
        self.lines.get(self.at).copied()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// Lines that can be chosen, and which of them is.
    pub(super) fn count(&self) -> (usize, usize) {
        let is_free = |key: &&Option<String>| key.is_some();
        let before = self.keys.iter().take(self.at + 1).filter(is_free).count();
        (before, self.keys.iter().filter(is_free).count())
    }

    /// The lines that fit `height`, the chosen one among them: their places, and whether each is chosen.
    pub(super) fn window(&self, height: usize) -> impl Iterator<Item = (usize, bool)> {
        let most = self.lines.len().saturating_sub(height);
        let top = self.at.saturating_sub(height / 2).min(most);
        let lines = self.lines.iter().enumerate().skip(top).take(height);
        lines.map(|(at, place)| (*place, at == self.at))
    }
}

fn has(text: &str, wanted: &str) -> bool {
    // Most texts and wishes are plain, and there may be ten thousand.
    if text.is_ascii() && wanted.is_ascii() {
        text.as_bytes()
            .windows(wanted.len())
            .any(|window| window.eq_ignore_ascii_case(wanted.as_bytes()))
    } else {
        text.to_lowercase().contains(wanted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(list: &mut SelectList, keys: &[&str]) {
        // One that begins with `-` can't be chosen.
        let key = |key: &str| (!key.starts_with('-')).then(|| key.to_owned());
        list.fill(keys.iter().map(|name| (key(name), *name, "")));
    }

    #[test]
    fn the_selection_is_kept_when_the_list_changes() {
        let mut list = SelectList::default();
        filled(&mut list, &["a", "b", "c"]);
        list.go(ListMotion::By(1));
        filled(&mut list, &["new", "a", "b", "c"]);
        assert_eq!((list.key(), list.place()), (Some("b"), Some(2)));
        filled(&mut list, &["a"]);
        assert_eq!(list.key(), Some("a"));
        filled(&mut list, &[]);
        assert_eq!(list.key(), None);
        list.go(ListMotion::Last);
    }

    #[test]
    fn items_that_cannot_be_selected_are_skipped() {
        let mut list = SelectList::default();
        filled(&mut list, &["-", "a", "-", "-", "b", "-"]);
        let mut went = |motion| {
            list.go(motion);
            list.key().map(str::to_owned).unwrap()
        };
        assert_eq!(went(ListMotion::First), "a");
        assert_eq!(went(ListMotion::By(1)), "b");
        assert_eq!(went(ListMotion::By(1)), "b");
        assert_eq!(went(ListMotion::By(-1)), "a");
        assert_eq!(went(ListMotion::Last), "b");
        assert_eq!(list.count(), (2, 2));
    }

    #[test]
    fn a_filter_keeps_only_matching_items() {
        let mut list = SelectList { filter: "Ä".to_owned(), ..SelectList::default() };
        filled(&mut list, &["one", "-x", "äh"]);
        assert_eq!((list.key(), list.count()), (Some("äh"), (1, 1)));
        list.filter = "ON".to_owned();
        filled(&mut list, &["one", "-x", "äh"]);
        assert_eq!(list.key(), Some("one"));
    }

    #[test]
    fn the_selected_item_is_in_the_window() {
        let names: Vec<String> = (0..100).map(|number| number.to_string()).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let mut list = SelectList::default();
        filled(&mut list, &names);
        for height in [0, 1, 5, 100, 1_000] {
            for motion in [ListMotion::First, ListMotion::By(50), ListMotion::Last] {
                list.go(motion);
                let chosen = list.window(height).filter(|(_, is_chosen)| *is_chosen).count();
                assert_eq!(chosen, usize::from(height > 0), "{height}");
                assert_eq!(list.window(height).count(), height.min(100));
            }
        }
    }
}
