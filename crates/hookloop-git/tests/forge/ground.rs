//! A repository with branches, and a forge over it.

use std::path::Path;
use std::process::Command;

use hookloop_git::forge::github::{ForgeToken, GitHub, GitHubSettings};
use hookloop_git::forge::{MergeMethod, MergeOptions, MergeRequestDraft};
use hookloop_http::HttpClient;
use hookloop_testbed::github::{self, Route};
use tempfile::TempDir;

pub(crate) const TOKEN: &str = "ghp_Zm9yIHRlc3RzIG9ubHkgMDEyMzQ1";
pub(crate) const BRANCH: &str = "task/a-1";

pub(crate) struct Ground {
    pub(crate) hub: github::GitHub,
    pub(crate) forge: GitHub,
    home: TempDir,
}

pub(crate) fn client(api: &str) -> GitHub {
    let (owner, repo) = ("octo".to_owned(), "demo".to_owned());
    let token = ForgeToken::new(TOKEN).unwrap();
    GitHub::new(GitHubSettings {
        api: api.parse().unwrap(),
        owner,
        repo,
        token,
        http: HttpClient::default(),
    })
    .unwrap()
}

impl Ground {
    /// Creates a base with one commit, and a branch with two more.
    pub(crate) fn new() -> Ground {
        let home = tempfile::tempdir().unwrap();
        let bare = home.path().join("bare.git");
        git(home.path(), &["init", "-q", "--bare", "-b", "main", "bare.git"]);
        git(home.path(), &["init", "-q", "-b", "main", "work"]);
        let hub = github::GitHub::start(&bare);
        let ground = Ground { forge: client(&hub.url()), hub, home };
        ground.work(&["remote", "add", "origin", "../bare.git"]);
        ground.commit("main", "base", "one");
        ground.work(&["checkout", "-q", "-b", BRANCH]);
        ground.commit(BRANCH, "a", "one");
        ground.commit(BRANCH, "b", "one");
        ground
    }

    pub(crate) fn work(&self, args: &[&str]) -> String {
        git(&self.home.path().join("work"), args)
    }

    pub(crate) fn bare(&self, args: &[&str]) -> String {
        git(&self.home.path().join("bare.git"), args)
    }

    /// Commits to a branch and pushes it; returns the new head.
    pub(crate) fn commit(&self, branch: &str, file: &str, text: &str) -> String {
        std::fs::write(self.home.path().join("work").join(file), text).unwrap();
        self.work(&["add", "."]);
        self.work(&["commit", "-q", "-m", &format!("{file}: {text}")]);
        self.work(&["push", "-q", "--force", "origin", &format!("HEAD:refs/heads/{branch}")]);
        self.work(&["rev-parse", "HEAD"])
    }

    /// Commits to the base as another user.
    pub(crate) fn commit_to_base(&self, file: &str, text: &str) -> String {
        self.work(&["checkout", "-q", "main"]);
        let commit = self.commit("main", file, text);
        self.work(&["checkout", "-q", BRANCH]);
        commit
    }

    pub(crate) fn head(&self, branch: &str) -> String {
        self.bare(&["rev-parse", &format!("refs/heads/{branch}")])
    }

    pub(crate) fn draft(&self) -> MergeRequestDraft {
        MergeRequestDraft {
            branch: BRANCH.into(),
            base: "main".into(),
            head: self.head(BRANCH),
            title: "Do a".into(),
            body: "It does a.".into(),
            is_draft: false,
            labels: vec!["agent".into()],
            reviewers: vec!["ada".into(), "team:core".into()],
        }
    }

    pub(crate) fn merge_options(&self, method: MergeMethod) -> MergeOptions {
        let (title, message) = ("Do a (#1)".into(), "Because.".into());
        MergeOptions { method, head: self.head(BRANCH), title, message }
    }
}

impl Drop for Ground {
    /// Checks that every request had a route that the contract test checks against GitHub's
    /// description.
    fn drop(&mut self) {
        if !std::thread::panicking() {
            let asked = self.hub.routes();
            let covered = Route::ALL.map(Some).into_iter().collect();
            assert!(asked.is_subset(&covered), "{:?}", self.hub.requests());
        }
    }
}

fn git(at: &Path, args: &[&str]) -> String {
    let mut command = Command::new("git");
    command.current_dir(at).args(args);
    command.env("GIT_CONFIG_NOSYSTEM", "1").env("GIT_CONFIG_GLOBAL", "/dev/null");
    for who in ["AUTHOR", "COMMITTER"] {
        command.env(format!("GIT_{who}_NAME"), "Ada").env(format!("GIT_{who}_EMAIL"), "ada@x");
    }
    let output = command.output().unwrap();
    assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}
