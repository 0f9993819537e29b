//! The bare repository of the forge, with real commits and real merges.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::process::{Command, Output};

use crate::process::run;

#[derive(Debug)]
pub(super) struct Bare(pub(super) PathBuf);

/// Parameters of a merge.
#[derive(Debug)]
pub(super) struct Merge<'a> {
    pub(super) method: &'a str,
    pub(super) base: &'a str,
    pub(super) head: &'a str,
    pub(super) message: &'a str,
}

impl Bare {
    fn git(&self, args: &[&str]) -> Command {
        let mut command = Command::new("git");
        command.arg("--git-dir").arg(&self.0).args(args);
        command.env("GIT_CONFIG_NOSYSTEM", "1").env("GIT_CONFIG_GLOBAL", "/dev/null");
        for who in ["AUTHOR", "COMMITTER"] {
            command.env(format!("GIT_{who}_NAME"), "forge");
            command.env(format!("GIT_{who}_EMAIL"), "forge@example.invalid");
        }
        command
    }

    fn try_git(&self, args: &[&str]) -> Output {
        self.git(args).output().unwrap()
    }

    fn ask(&self, args: &[&str]) -> String {
        run(&mut self.git(args)).trim().to_owned()
    }

    /// Returns the head commit of each branch.
    pub(super) fn heads(&self) -> HashMap<String, String> {
        let format = "--format=%(objectname) %(refname:lstrip=2)";
        let list = self.ask(&["for-each-ref", format, "refs/heads"]);
        let lines = list.lines().filter_map(|line| line.split_once(' '));
        lines.map(|(commit, branch)| (branch.to_owned(), commit.to_owned())).collect()
    }

    /// Returns the branches that are merged into a commit.
    pub(super) fn merged(&self, commit: &str) -> HashSet<String> {
        let merged = format!("--merged={commit}");
        let list =
            self.ask(&["for-each-ref", "--format=%(refname:lstrip=2)", &merged, "refs/heads"]);
        list.lines().map(str::to_owned).collect()
    }

    /// Returns the head commit of a branch.
    pub(super) fn head(&self, branch: &str) -> Option<String> {
        let name = format!("refs/heads/{branch}");
        let found = self.try_git(&["show-ref", "--verify", "--hash", "--end-of-options", &name]);
        let commit = String::from_utf8(found.stdout).unwrap().trim().to_owned();
        found.status.success().then_some(commit)
    }

    pub(super) fn is_commit(&self, name: &str) -> bool {
        let is_hash = name.len() >= 40 && name.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_hash && self.try_git(&["cat-file", "-e", &format!("{name}^{{commit}}")]).status.success()
    }

    /// Returns whether a commit is in the history of another.
    pub(super) fn is_in(&self, commit: &str, of: &str) -> bool {
        self.try_git(&["merge-base", "--is-ancestor", commit, of]).status.success()
    }

    pub(super) fn conflicts(&self, base: &str, head: &str) -> bool {
        self.merged_tree(&[base, head]).is_none()
    }

    fn merged_tree(&self, args: &[&str]) -> Option<String> {
        let merged = self.try_git(&[&["merge-tree", "--write-tree"], args].concat());
        let said = String::from_utf8(merged.stdout).unwrap();
        merged.status.success().then(|| said.lines().next().unwrap().to_owned())
    }

    /// Merges, and updates the base unless it has moved; returns the new head of the base.
    pub(super) fn merge(&self, into: &str, merge: &Merge<'_>) -> Option<String> {
        let Merge { method, base, head, message } = merge;
        let commit = match *method {
            "rebase" => self.rebased(base, head)?,
            method => {
                let tree = self.merged_tree(&[base, head])?;
                let second: &[&str] = if method == "merge" { &["-p", head] } else { &[] };
                let args = ["commit-tree", &tree, "-m", message, "-p", base];
                self.ask(&[&args, second].concat())
            }
        };
        let name = format!("refs/heads/{into}");
        self.try_git(&["update-ref", &name, &commit, base]).status.success().then_some(commit)
    }

    /// Rebases each commit of the head onto the base.
    fn rebased(&self, base: &str, head: &str) -> Option<String> {
        let range = format!("{base}..{head}");
        let commits = self.ask(&["rev-list", "--reverse", "--no-merges", &range]);
        let mut top = (*base).to_owned();
        for commit in commits.lines() {
            let below = format!("--merge-base={commit}^");
            let tree = self.merged_tree(&[&below, &top, commit])?;
            let message = self.ask(&["log", "-1", "--format=%B", commit]);
            let author = self.ask(&["log", "-1", "--format=%an%n%ae", commit]);
            let (name, address) = author.split_once('\n').unwrap();
            let mut made = self.git(&["commit-tree", &tree, "-m", &message, "-p", &top]);
            made.env("GIT_AUTHOR_NAME", name).env("GIT_AUTHOR_EMAIL", address);
            top = run(&mut made).trim().to_owned();
        }
        Some(top)
    }
}
