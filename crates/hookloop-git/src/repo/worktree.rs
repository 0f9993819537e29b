//! Creates a task's worktree, or finds it again after any interruption.

use std::fs;
use std::path::{Path, PathBuf};

use hookloop_core::id::TaskId;

use super::error::RepoError;
use super::git_command::ObjectStore;
use super::place::is_directory;
use super::worktree_path::WorktreePath;
use super::{CommitId, Repo, Worktree, ignored_files, state_file};
use crate::git::copy_index;

impl Repo<'_> {
    /// Returns the worktree of a task. Creates it if there is none.
    pub fn worktree(&self, task: &TaskId) -> Result<Worktree, RepoError> {
        self.worktree_from(task, None)
    }

    /// Returns the worktree of a task. A new one begins with the commit that another machine pushed, if that is
    /// known.
    pub fn worktree_from(
        &self,
        task: &TaskId,
        pushed: Option<&CommitId>,
    ) -> Result<Worktree, RepoError> {
        self.enter_worktree(task, pushed, PlaceEntry::First)
    }

    /// Returns the worktree of a task that is in progress. Its branch must exist: without it the work is unknown,
    /// and a person decides whether to begin again.
    pub fn worktree_again(
        &self,
        task: &TaskId,
        pushed: Option<&CommitId>,
    ) -> Result<Worktree, RepoError> {
        self.enter_worktree(task, pushed, PlaceEntry::Again)
    }

    fn enter_worktree(
        &self,
        task: &TaskId,
        pushed: Option<&CommitId>,
        entry: PlaceEntry,
    ) -> Result<Worktree, RepoError> {
        let slot = self.slot(task);
        super::names::check_branch(&slot.branch)?;
        self.check_worktrees_directory()?;
        state_file::make_directory(&slot.notes)?;
        let _alone = self.alone_in(&slot)?;
        self.bring_back(&slot)?;
        let was_made = slot.made().exists();
        let head = self.asker.users_ref(&slot.full_branch())?;
        let damage = self.missing_files(&slot).filter(|_| was_made);
        let is_made = was_made && head.is_some() && damage.is_none();
        let git_dir = match (was_made, &head, &damage) {
            (true, Some(_), None) => self.repair(&slot)?,
            (true, Some(head), Some(reason)) => self.recreate(&slot, head, reason)?,
            (true, None, damage) if entry == PlaceEntry::Again || damage.is_none() => {
                let base = state_file::read_line(&slot.made())?;
                return Err(branch_gone(&slot, base.as_deref()));
            }
            _ => self.make(&slot, pushed)?,
        };
        let loss = self.loss(&slot)?;
        let base = self.base_of(&slot)?;
        state_file::remove(&slot.used())?;
        state_file::write(&slot.used(), b"")?;
        let project = slot.path.join(&self.found.prefix);
        let w = Worktree {
            task: slot.task,
            path: slot.path,
            project,
            branch: slot.branch,
            base,
            is_new: !is_made,
            loss,
            git_dir,
        };
        self.clear_worktree_locks(&w)?;
        self.finish_moving(&w)?;
        if let Some(pushed) = pushed.filter(|_| is_made) {
            self.catch_up(&w, pushed)?;
        }
        Ok(w)
    }

    /// Creates a worktree from its branch. Creates the branch if there is none.
    fn make(&self, slot: &WorktreePath, pushed: Option<&CommitId>) -> Result<PathBuf, RepoError> {
        let branch = slot.full_branch();
        self.check_not_elsewhere(slot)?;
        let base = self.newest_base()?;
        self.hand_over_base(&base)?;
        let head = match self.asker.users_ref(&branch)? {
            Some(head) if head == base => head,
            // A branch with work in it stays.
            Some(head) if !self.is_ancestor(&head, &base)? => head,
            other => {
                let start = self.start(slot, pushed)?.unwrap_or_else(|| base.clone());
                self.asker.move_branch(&branch, other.as_ref(), &start)?;
                start
            }
        };
        self.lay_out(slot, &head, &base)
    }

    /// Registers a new worktree at `head`. Removes the rest of an old one, which is unused or damaged.
    pub(super) fn lay_out(
        &self,
        slot: &WorktreePath,
        head: &CommitId,
        base: &CommitId,
    ) -> Result<PathBuf, RepoError> {
        self.unregister(slot)?;
        if is_directory(&slot.path) {
            state_file::remove_all(&slot.path)?;
        } else {
            state_file::remove(&slot.path)?;
        }
        for note in [slot.moving(), slot.conflict(), slot.index(), slot.made()] {
            state_file::remove(&note)?;
        }
        let git_dir = self.register(slot)?;
        let index = slot.index();
        let files =
            self.asker.ask(slot.files(&index), &["read-tree", "--reset", "-u", head.as_str()]);
        files.objects(ObjectStore::Users).done()?;
        let own = git_dir.join("index");
        copy_index(&index, &own).map_err(RepoError::io(&own))?;
        ignored_files::copy(self, slot)?;
        state_file::write(&slot.made(), format!("{base}\n").as_bytes())?;
        Ok(git_dir)
    }

    pub(super) fn check_not_elsewhere(&self, slot: &WorktreePath) -> Result<(), RepoError> {
        match self.asker.checkout_of(&slot.full_branch())? {
            Some(path) if path != slot.path => Err(used_elsewhere(slot, &path)),
            _ => Ok(()),
        }
    }

    /// Continues with a commit that another machine pushed since, if the local work is part of it or was pushed
    /// before it.
    fn catch_up(&self, w: &Worktree, pushed: &CommitId) -> Result<(), RepoError> {
        let head = self.head(w)?;
        if head == *pushed || self.target.remote.is_none() || self.check_clean(w).is_err() {
            return Ok(());
        }
        if !self.bring(&w.branch, pushed)? || self.is_ancestor(pushed, &head)? {
            return Ok(());
        }
        let is_old = self.is_ancestor(&head, pushed)? || self.intents(&w.branch)?.contains(&head);
        if !is_old {
            return Ok(());
        }
        self.hand_over_work(pushed, &w.task)?;
        self.note_intent(&w.branch, pushed)?;
        self.move_worktree(w, &head, pushed)
    }

    /// Returns the commit of the task that another machine pushed, copied to the user's repository.
    fn start(
        &self,
        slot: &WorktreePath,
        pushed: Option<&CommitId>,
    ) -> Result<Option<CommitId>, RepoError> {
        let Some(pushed) = pushed else { return Ok(None) };
        if self.target.remote.is_none() || !self.bring(&slot.branch, pushed)? {
            return Ok(None);
        }
        self.hand_over_work(pushed, &slot.task)?;
        // The commit is hookloop's, whichever machine pushed it.
        self.note_intent(&slot.branch, pushed)?;
        Ok(Some(pushed.clone()))
    }

    /// Repairs git's registration of a worktree.
    fn repair(&self, slot: &WorktreePath) -> Result<PathBuf, RepoError> {
        let Some(git_dir) = self.asker.registration(&slot.path)? else {
            return self.register_anew(slot);
        };
        let link = slot.path.join(".git");
        if is_directory(&link) {
            return Err(RepoError::NeedsHuman {
                why: format!(
                    "{} is a repository of its own, and not a worktree",
                    slot.path.display()
                ),
                hint: format!("move it away: mv {} {}.git", link.display(), slot.path.display()),
            });
        }
        state_file::write(&git_dir.join("commondir"), b"../..\n")?;
        let expected = format!("gitdir: {}\n", git_dir.display());
        // An agent may have changed the link. An unreadable link is replaced, too.
        if state_file::read(&link).ok().flatten().as_deref() != Some(expected.as_bytes()) {
            state_file::remove(&link)?;
            state_file::write(&link, expected.as_bytes())?;
        }
        if !git_dir.join("locked").exists() {
            let args = ["worktree", "lock", "--reason", "hookloop works here", "--"];
            self.asker.users(&args).arg(&slot.path).done()?;
        }
        Ok(git_dir)
    }

    /// Registers an empty directory.
    fn register(&self, slot: &WorktreePath) -> Result<PathBuf, RepoError> {
        let args = ["worktree", "add", "--quiet", "--no-checkout", "--lock", "--"];
        self.asker.users(&args).arg(&slot.path).arg(&slot.branch).done()?;
        let lost = || RepoError::permanent(format!("git does not know {}", slot.path.display()));
        let git_dir = self.asker.registration(&slot.path)?.ok_or_else(lost)?;
        // A task gets all files, even if the user has a sparse checkout.
        state_file::remove(&git_dir.join("info/sparse-checkout"))?;
        state_file::remove(&git_dir.join("config.worktree"))?;
        Ok(git_dir)
    }

    /// Registers a worktree that git has forgotten. It may contain work, so its files are moved aside meanwhile.
    fn register_anew(&self, slot: &WorktreePath) -> Result<PathBuf, RepoError> {
        if let Some(path) = self.asker.checkout_of(&slot.full_branch())? {
            return Err(used_elsewhere(slot, &path));
        }
        let (path, aside) = (&slot.path, slot.aside());
        fs::rename(path, &aside).map_err(RepoError::io(path))?;
        self.register(slot)?;
        self.bring_back(slot)?;
        let found = self.asker.registration(path)?;
        let git_dir = found.ok_or_else(|| RepoError::permanent("git has forgotten a worktree"))?;
        let head = self.asker.users_ref(&slot.full_branch())?;
        let head = head.ok_or_else(|| RepoError::permanent("a task's branch is gone"))?;
        self.refresh_index(slot, &head)?;
        let own = git_dir.join("index");
        copy_index(&slot.index(), &own).map_err(RepoError::io(&own))?;
        Ok(git_dir)
    }

    /// Moves the files back.
    fn bring_back(&self, slot: &WorktreePath) -> Result<(), RepoError> {
        let (path, aside) = (&slot.path, slot.aside());
        if !aside.is_dir() {
            return Ok(());
        }
        let link = path.join(".git");
        if link.is_file() {
            let theirs = aside.join(".git");
            fs::rename(&link, &theirs).map_err(RepoError::io(&theirs))?;
        }
        // The directory is empty now, or was not there. If it has other content, this fails, and nothing is lost.
        if path.is_dir() {
            fs::remove_dir(path).map_err(RepoError::io(path))?;
        }
        fs::rename(&aside, path).map_err(RepoError::io(path))
    }

    pub(super) fn unregister(&self, slot: &WorktreePath) -> Result<(), RepoError> {
        match self.asker.registration(&slot.path)? {
            None => Ok(()),
            // By hand: git would read the files first, by the repository's configuration.
            Some(git_dir) => state_file::remove_all(&git_dir),
        }
    }

    /// Returns the common commit of a branch and the target.
    fn base_of(&self, slot: &WorktreePath) -> Result<CommitId, RepoError> {
        let made = state_file::read_line(&slot.made())?.and_then(|line| line.parse().ok());
        let head = self.asker.users_ref(&slot.full_branch())?;
        let (Some(head), Some(target)) = (head, self.known_target()?) else {
            return made.ok_or_else(|| RepoError::permanent("the target is not known"));
        };
        let args = ["merge-base", "--", head.as_str(), target.as_str()];
        let said = self.asker.private_repo(&args).said()?;
        match said.code {
            0 => {
                let text = String::from_utf8_lossy(&said.stdout).into_owned();
                let first = text.lines().next().unwrap_or_default();
                first.parse().map_err(|_| RepoError::permanent("git names no merge base"))
            }
            // There is no common commit.
            _ => made.ok_or_else(|| RepoError::permanent("the target is not known")),
        }
    }
}

fn branch_gone(slot: &WorktreePath, base: Option<&str>) -> RepoError {
    let WorktreePath { branch, task, .. } = slot;
    let base = base.unwrap_or("<commit>");
    RepoError::NeedsHuman {
        why: format!("branch `{branch}`, which has the work of task `{task}`, is gone"),
        hint: format!(
            "bring it back with the commit that it had, or start again: git branch {branch} {base}"
        ),
    }
}

fn used_elsewhere(slot: &WorktreePath, path: &Path) -> RepoError {
    RepoError::NeedsHuman {
        why: format!("`{}` is checked out in {}", slot.branch, path.display()),
        hint: format!("git -C {} switch --detach", path.display()),
    }
}

/// Whether a session enters a task's worktree for the first time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlaceEntry {
    First,
    /// The session holds the task and has worked in the worktree.
    Again,
}
