//! Previews the undo of a session, and undoes exactly the previewed changes: for the TUI and the dashboard.
//!
//! A plan locks the checkout, so no plan is kept while a person decides. The undo makes a plan again, and a digest
//! shows whether its files are those of the preview.

use hookloop_core::digest::sha256_hex;
use hookloop_core::id::SessionId;
use hookloop_engine::project::Project;
use hookloop_engine::session::undo::{self, EditedFile, FileEffect, PlannedRestore, UndoRequest};
use hookloop_git::snapshot::RestoreReport;

use crate::error::{CliError, CliResult};
use crate::present::counted_items;
use crate::sanitize::plain;

/// Files that a preview lists of each kind.
const LISTED_MAX: usize = 500;
/// Files that a result names.
const NAMED_MAX: usize = 3;

/// The files that an undo would change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UndoPreview {
    pub(crate) session: SessionId,
    /// Names the undone turns, such as `undo of turns 1 to 3`.
    pub(crate) label: String,
    /// The first files with the effect on each.
    pub(crate) files: Vec<(String, FileEffect)>,
    pub(crate) file_count: usize,
    /// The first files that stay, because a person may have changed them.
    pub(crate) edited: Vec<EditedFile>,
    pub(crate) edited_count: usize,
    /// The commit before the turns, if another one is checked out now.
    pub(crate) old_head: Option<String>,
    /// The digest of all files with their effects.
    pub(crate) digest: String,
}

impl UndoPreview {
    /// Plans the undo of a session from a turn on, or of all turns. Blocks, and changes no file.
    pub(crate) fn read(
        project: &Project,
        session: &SessionId,
        turn: Option<u32>,
    ) -> CliResult<UndoPreview> {
        let planned = plan(project, session, turn)?;
        Ok(UndoPreview {
            session: session.clone(),
            label: planned.label().to_owned(),
            files: planned.files().take(LISTED_MAX).collect(),
            file_count: planned.len(),
            edited: planned.edited.iter().take(LISTED_MAX).cloned().collect(),
            edited_count: planned.edited.len(),
            old_head: planned.old_head.clone(),
            digest: digest_of(planned.label(), planned.files()),
        })
    }

    /// Returns the label and the number of files that change.
    pub(crate) fn heading(&self) -> String {
        let files = counted_items(self.file_count, "file changes", "files change");
        format!("{}: {files}", self.label)
    }

    /// Returns the number of files that stay, with the reason; none if all files change.
    pub(crate) fn kept(&self) -> Option<String> {
        let reason = "a person may have changed";
        match self.edited_count {
            0 => None,
            1 => Some(format!("1 file stays: {reason} it")),
            count => Some(format!("{count} files stay: {reason} them")),
        }
    }

    /// Returns the line about commits, which an undo does not remove.
    pub(crate) fn commits(&self) -> Option<String> {
        let head = self.old_head.as_deref()?;
        let short = head.get(..12).unwrap_or(head);
        Some(format!("Commits stay. The commit before these turns is {short}."))
    }

    /// Returns the reason why no file would change; none if one would.
    pub(crate) fn nothing(&self) -> Option<String> {
        if self.file_count > 0 {
            return None;
        }
        Some(match self.kept() {
            None => "nothing to undo: the files are in that state already".to_owned(),
            Some(kept) => format!(
                "nothing to undo; {kept}; to replace: hookloop undo --session {} --overwrite",
                self.session
            ),
        })
    }
}

/// Undoes the changes of a preview. Blocks. Refused if the files to change are not those of the preview any more.
pub(crate) fn undo_as_shown(
    project: &Project,
    session: &SessionId,
    turn: Option<u32>,
    digest: &str,
) -> CliResult<String> {
    let planned = plan(project, session, turn)?;
    if digest_of(planned.label(), planned.files()) != digest {
        return Err(CliError::refused(
            "the files to change are not those that were shown any more: nothing was changed",
        ));
    }
    if planned.is_empty() {
        return Err(CliError::refused("nothing to undo"));
    }
    result(&undo::perform(project, &planned)?)
}

fn plan(project: &Project, session: &SessionId, turn: Option<u32>) -> CliResult<PlannedRestore> {
    let runner = project.runner();
    let runner = runner.ok_or_else(|| CliError::system("the project has no directory"))?;
    // Files that a person changed are not overwritten.
    Ok(undo::plan(project, runner, session, &UndoRequest::Before(turn), false)?)
}

/// Returns a digest of the turns and of each file with the effect on it. No path contains a zero byte.
fn digest_of(label: &str, files: impl Iterator<Item = (String, FileEffect)>) -> String {
    let mut text = format!("{label}\0");
    for (path, effect) in files {
        text.push_str(effect.name());
        text.push('\0');
        text.push_str(&path);
        text.push('\0');
    }
    sha256_hex(text)
}

fn result(report: &RestoreReport) -> CliResult<String> {
    let restored = counted_items(report.restored, "file was restored", "files were restored");
    if report.left.is_empty() {
        return Ok(format!("{restored}; to take this back: hookloop undo --back"));
    }
    let left = counted_items(report.left.len(), "file was not", "files were not");
    let named = report.left.iter().take(NAMED_MAX);
    let named: Vec<String> =
        named.map(|left| format!("{} ({})", plain(&left.path), left.reason)).collect();
    let more = match report.left.len() - named.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    Err(CliError::refused(format!("{restored}, {left}: {}{more}", named.join(", "))))
}

#[cfg(test)]
mod tests {
    use hookloop_git::snapshot::NotRestored;

    use super::*;

    #[test]
    fn a_digest_depends_on_turns_paths_and_effects() {
        let of = |label: &str, files: &[(&str, FileEffect)]| {
            digest_of(label, files.iter().map(|(path, effect)| ((*path).to_owned(), *effect)))
        };
        let files = [("a", FileEffect::Changed), ("b", FileEffect::Deleted)];
        let known = of("undo of turn 1", &files);
        assert_eq!(known, of("undo of turn 1", &files));
        for (label, files) in [
            ("undo of turns 1 to 2", &files[..]),
            ("undo of turn 1", &files[..1]),
            ("undo of turn 1", &[("a", FileEffect::Deleted), ("b", FileEffect::Deleted)][..]),
            ("undo of turn 1", &[("a", FileEffect::Changed), ("c", FileEffect::Deleted)][..]),
        ] {
            assert_ne!(known, of(label, files), "{label} {files:?}");
        }
    }

    #[test]
    fn files_that_were_not_restored_are_named() {
        let report = RestoreReport { restored: 1, left: Vec::new() };
        let told = result(&report).unwrap();
        assert_eq!(told, "1 file was restored; to take this back: hookloop undo --back");
        let left = |name: &str| NotRestored { path: name.to_owned(), reason: "it changed".into() };
        let report = RestoreReport { restored: 2, left: ["a", "b", "c", "d\n"].map(left).to_vec() };
        let told = result(&report).unwrap_err().told();
        let expected = "2 files were restored, 4 files were not: a (it changed), b (it changed), \
             c (it changed) and 1 more";
        assert_eq!(told, expected);
    }
}
