//! The diff of a file: the changed lines, with a few lines of context.

/// Lines that are shown around a change.
const CONTEXT: usize = 3;
/// Longer changes are compared as a whole: one table of so many cells is enough.
const CELLS_MAX: usize = 4_000_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DiffSign {
    Same,
    Gone,
    New,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DiffLine<'t> {
    pub(crate) sign: DiffSign,
    pub(crate) text: &'t str,
}

/// Lines that stand together, and where they begin in the old and the new text, from 1.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct DiffHunk<'t> {
    pub(crate) old: usize,
    pub(crate) new: usize,
    pub(crate) lines: Vec<DiffLine<'t>>,
}

impl DiffHunk<'_> {
    pub(crate) fn heading(&self) -> String {
        let count = |other: DiffSign| self.lines.iter().filter(|line| line.sign != other).count();
        format!(
            "@@ -{},{} +{},{} @@",
            self.old,
            count(DiffSign::New),
            self.new,
            count(DiffSign::Gone)
        )
    }
}

/// The changes from `old` to `new`.
pub(crate) fn hunks<'t>(old: &'t str, new: &'t str) -> Vec<DiffHunk<'t>> {
    let lines = compare(&lines_of(old), &lines_of(new));
    let is_near = |at: usize| {
        let near = at.saturating_sub(CONTEXT)..(at + CONTEXT + 1).min(lines.len());
        lines[near].iter().any(|line| line.sign != DiffSign::Same)
    };
    let mut hunks = Vec::<DiffHunk<'t>>::new();
    let mut is_open = false;
    let mut old_at = 1;
    let mut new_at = 1;
    for (at, line) in lines.iter().enumerate() {
        let shown = is_near(at);
        if shown && !is_open {
            hunks.push(DiffHunk { old: old_at, new: new_at, lines: Vec::new() });
        }
        is_open = shown;
        if let Some(hunk) = hunks.last_mut().filter(|_| shown) {
            hunk.lines.push(*line);
        }
        old_at += usize::from(line.sign != DiffSign::New);
        new_at += usize::from(line.sign != DiffSign::Gone);
    }
    hunks
}

/// With their ends, which may be what differs.
fn lines_of(text: &str) -> Vec<&str> {
    text.split_inclusive('\n').collect()
}

fn compare<'t>(old: &[&'t str], new: &[&'t str]) -> Vec<DiffLine<'t>> {
    let head = old.iter().zip(new).take_while(|(a, b)| a == b).count();
    let old_rest = &old[head..];
    let new_rest = &new[head..];
    let tail = old_rest.iter().rev().zip(new_rest.iter().rev()).take_while(|(a, b)| a == b).count();
    let middle_old = &old_rest[..old_rest.len() - tail];
    let middle_new = &new_rest[..new_rest.len() - tail];
    let of = |sign| move |text: &&'t str| DiffLine { sign, text };
    let mut lines: Vec<DiffLine<'t>> = old[..head].iter().map(of(DiffSign::Same)).collect();
    if middle_old.len().saturating_mul(middle_new.len()) > CELLS_MAX {
        lines.extend(middle_old.iter().map(of(DiffSign::Gone)));
        lines.extend(middle_new.iter().map(of(DiffSign::New)));
    } else {
        lines.extend(middle(middle_old, middle_new));
    }
    lines.extend(old_rest[old_rest.len() - tail..].iter().map(of(DiffSign::Same)));
    lines
}

/// By the longest lines that both have in common.
fn middle<'t>(old: &[&'t str], new: &[&'t str]) -> Vec<DiffLine<'t>> {
    let width = new.len() + 1;
    let mut common = vec![0_u32; (old.len() + 1) * width];
    for a in (0..old.len()).rev() {
        for b in (0..new.len()).rev() {
            common[a * width + b] = if old[a] == new[b] {
                common[(a + 1) * width + b + 1] + 1
            } else {
                common[(a + 1) * width + b].max(common[a * width + b + 1])
            };
        }
    }
    let mut a = 0;
    let mut b = 0;
    let mut lines = Vec::new();
    while a < old.len() || b < new.len() {
        let is_same = a < old.len() && b < new.len() && old[a] == new[b];
        let goes = b == new.len()
            || (a < old.len() && common[(a + 1) * width + b] >= common[a * width + b + 1]);
        let (sign, text) = match (is_same, goes) {
            (true, _) => (DiffSign::Same, old[a]),
            (false, true) => (DiffSign::Gone, old[a]),
            (false, false) => (DiffSign::New, new[b]),
        };
        lines.push(DiffLine { sign, text });
        a += usize::from(sign != DiffSign::New);
        b += usize::from(sign != DiffSign::Gone);
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(old: &str, new: &str) -> String {
        let mut text = String::new();
        for hunk in hunks(old, new) {
            text.push_str(&format!("{}\n", hunk.heading()));
            for line in &hunk.lines {
                let sign = match line.sign {
                    DiffSign::Same => ' ',
                    DiffSign::Gone => '-',
                    DiffSign::New => '+',
                };
                text.push_str(&format!("{sign}{}\n", line.text.trim_end()));
            }
        }
        text
    }

    #[test]
    fn a_diff_has_only_changed_lines_and_their_context() {
        let old = "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n";
        let new = "1\n2\n3\n4\nfour\n5\n6\n7\n8\n9\n10\n11\nx\n";
        assert_eq!(
            shown(old, new),
            "@@ -2,6 +2,7 @@\n 2\n 3\n 4\n+four\n 5\n 6\n 7\n@@ -9,4 +10,4 @@\n 9\n 10\n 11\n-12\n+x\n"
        );
        assert_eq!(shown(old, old), "");
        assert_eq!(shown("", "a\n"), "@@ -1,0 +1,1 @@\n+a\n");
        assert_eq!(shown("a", "a\n"), "@@ -1,1 +1,1 @@\n-a\n+a\n");
    }
}
