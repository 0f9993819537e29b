//! Repositories of all kinds.

use std::fs;

use hookloop_git::repo::RepoError;

use crate::delivery_git::bed::{Bed, read, task, write};
use crate::delivery_git::course::course;

#[test]
fn a_shallow_clone() {
    let bed = Bed::new();
    for number in 0..3 {
        bed.others_change("history", &number.to_string());
    }
    fs::remove_dir_all(bed.checkout()).unwrap();
    let url = format!("file://{}", bed.path().join("origin.git").display());
    bed.git(bed.path(), &["clone", "--quiet", "--depth=1", &url, "checkout"]);
    let shallow = fs::read(bed.checkout().join(".git/shallow")).unwrap();
    course(&bed, &|_| {});
    assert_eq!(fs::read(bed.checkout().join(".git/shallow")).unwrap(), shallow);
    assert_eq!(bed.in_checkout(&["rev-list", "--count", "HEAD"]), "1");
    bed.in_checkout(&["fsck"]);
    // The user may get the rest at any time.
    bed.in_checkout(&["fetch", "--quiet", "--unshallow"]);
    let w = bed.repo().worktree(&task("later")).unwrap();
    bed.git(&w.path, &["log", "--oneline"]);
}

#[test]
fn a_linked_worktree() {
    let mut bed = Bed::new();
    bed.in_checkout(&["worktree", "add", "--quiet", "-b", "linked", "../linked"]);
    bed.root = bed.path().join("linked");
    course(&bed, &|_| {});
    assert_eq!(bed.git(&bed.root, &["status", "--porcelain"]), "");
    assert_eq!(bed.git(&bed.root, &["branch", "--show-current"]), "linked");
}

#[test]
fn a_directory_further_down() {
    let mut bed = Bed::new();
    bed.others_change("deep/project/hookloop.yaml", "version: 1\n");
    bed.in_checkout(&["pull", "--quiet"]);
    let checkout = bed.checkout();
    bed.root = checkout.join("deep/project");
    fs::write(bed.root.join(".env"), "here").unwrap();
    bed.wish.copy = vec![".env".to_owned()];
    course(&bed, &|w| {
        assert_eq!(w.project, w.path.join("deep/project"));
        assert_eq!(fs::read_to_string(w.project.join(".env")).unwrap(), "here");
    });
}

#[test]
fn submodules_stay_as_they_are() {
    let bed = Bed::new();
    bed.git(bed.path(), &["clone", "--quiet", "origin.git", "part"]);
    let other = bed.path().join("other");
    bed.git(&other, &["submodule", "--quiet", "add", "../origin.git", "sub"]);
    bed.save("other", "sub");
    bed.git(&other, &["push", "--quiet", "origin", "main"]);
    bed.in_checkout(&["pull", "--quiet"]);
    bed.in_checkout(&["submodule", "--quiet", "update", "--init"]);
    let linked = bed.in_checkout(&["ls-tree", "HEAD", "sub"]);
    course(&bed, &|w| {
        assert_eq!(fs::read_dir(w.path.join("sub")).unwrap().count(), 0);
        assert_eq!(bed.git(&w.path, &["ls-tree", "HEAD", "sub"]), linked);
    });
    let repo = bed.repo();
    let base = repo.newest_base().unwrap();
    let tree = bed.git(&bed.path().join("origin.git"), &["ls-tree", base.as_str(), "sub"]);
    assert_eq!(tree, linked);
}

#[test]
fn a_home_without_a_configuration() {
    let bed = Bed::new();
    // Who changes the target has a name; the user does not.
    for name in ["user.name", "user.email"] {
        bed.git(&bed.path().join("other"), &["config", name, "other"]);
    }
    fs::remove_file(bed.path().join("home/.gitconfig")).unwrap();
    course(&bed, &|_| {});
    let log = bed.git(&bed.path().join("origin.git"), &["log", "-1", "--format=%an <%ae>", "main"]);
    assert_eq!(log, "hookloop <hookloop@localhost>");
}

#[test]
fn a_remote_named_by_a_path_from_here_and_another_branch() {
    let mut bed = Bed::new();
    bed.in_checkout(&["remote", "rename", "origin", "upstream"]);
    bed.in_checkout(&["remote", "set-url", "upstream", "../origin.git"]);
    bed.wish.remote = Some("upstream".to_owned());
    course(&bed, &|_| {});
    bed.git(&bed.path().join("origin.git"), &["branch", "next", "main"]);
    bed.wish.base = Some("next".to_owned());
    assert_eq!(bed.repo().target().branch, "next");
    bed.repo().newest_base().unwrap();
    bed.wish.base = Some("none".to_owned());
    let refused = bed.repo().newest_base();
    assert!(refused.is_err(), "{refused:?}");
}

#[test]
fn objects_with_longer_names() {
    let bed = Bed::empty();
    let init = ["init", "--quiet", "--object-format=sha256", "--initial-branch=main"];
    bed.git(bed.path(), &[&init[..], &["--bare", "origin.git"]].concat());
    bed.git(bed.path(), &["clone", "--quiet", "origin.git", "other"]);
    fs::write(bed.path().join("other/file"), "1\n2\n3\n4\n5\n").unwrap();
    bed.save("other", "first");
    bed.git(&bed.path().join("other"), &["push", "--quiet", "origin", "main"]);
    bed.git(bed.path(), &["clone", "--quiet", "origin.git", "checkout"]);
    course(&bed, &|_| {});
}

#[test]
fn the_users_own_filters_and_exclusions_hold() {
    let bed = Bed::new();
    let own = "[user]\n\tname = User\n\temail = u@e\n\
        [core]\n\texcludesFile = ~/ignored\n\
        [filter \"rot\"]\n\tclean = tr a-z A-Z\n\tsmudge = tr A-Z a-z\n\trequired\n";
    fs::write(bed.path().join("home/.gitconfig"), own).unwrap();
    fs::write(bed.path().join("home/ignored"), "*.mine\n").unwrap();
    bed.others_change(".gitattributes", "*.rot filter=rot\n");
    bed.others_change("a.rot", "text\n");
    let repo = bed.repo();
    let w = repo.worktree(&task("t1")).unwrap();
    assert_eq!(bed.git(&w.path, &["show", "HEAD:a.rot"]), "TEXT");
    assert_eq!(read(&w, "a.rot"), "text\n");
    write(&w, "b.rot", "more\n");
    write(&w, "x.mine", "mine\n");
    repo.commit_all(&w, "more").unwrap().unwrap();
    assert_eq!(bed.git(&w.path, &["show", "HEAD:b.rot"]), "MORE");
    assert_eq!(bed.git(&w.path, &["ls-files", "x.mine"]), "");
}

#[test]
fn the_ends_of_lines_are_as_the_repository_says() {
    let bed = Bed::new();
    bed.in_checkout(&["config", "core.autocrlf", "true"]);
    let w = bed.repo().worktree(&task("t1")).unwrap();
    assert_eq!(read(&w, "file"), "1\r\n2\r\n3\r\n4\r\n5\r\n");
    assert_eq!(bed.git(&w.path, &["status", "--porcelain"]), "");
}

#[test]
fn the_users_environment_leads_git_nowhere_else() {
    let mut bed = Bed::new();
    bed.git(bed.path(), &["init", "--quiet", "elsewhere"]);
    let elsewhere = bed.path().join("elsewhere");
    for (name, path) in [
        ("GIT_DIR", ".git"),
        ("GIT_WORK_TREE", ""),
        ("GIT_INDEX_FILE", ".git/index"),
        ("GIT_OBJECT_DIRECTORY", ".git/objects"),
        ("GIT_COMMON_DIR", ".git"),
    ] {
        bed.set(name, elsewhere.join(path));
    }
    bed.set("GIT_CONFIG_PARAMETERS", "'core.worktree'='/'");
    bed.set("GIT_NAMESPACE", "x");
    let repo = bed.repo();
    let w = repo.worktree(&task("t1")).unwrap();
    write(&w, "file", "work\n");
    repo.commit_all(&w, "work").unwrap().unwrap();
    let head = repo.head(&w).unwrap();
    repo.push(&w.branch, &head).unwrap();
    let at_remote = bed.path().join("origin.git/refs/heads/hookloop/t1");
    assert_eq!(fs::read_to_string(at_remote).unwrap().trim(), head.as_str());
}

#[test]
fn what_cannot_be_used_is_told_with_what_to_do() {
    let check = |bed: &Bed, expected: &str| match bed.open() {
        Err(RepoError::NeedsHuman { why, hint }) => {
            assert!(why.contains(expected) && !hint.is_empty(), "{why}");
        }
        other => panic!("{expected}: {other:?}"),
    };
    let bed = Bed::empty();
    fs::create_dir(&bed.root).unwrap();
    check(&bed, "not in a git repository");
    bed.git(&bed.root, &["init", "--quiet", "--initial-branch=odd"]);
    check(&bed, "no commit yet");
    bed.git(&bed.root, &["commit", "--quiet", "--allow-empty", "--message=First"]);
    check(&bed, "which branch");
    let mut bed = Bed::new();
    bed.wish.remote = Some("nobody".to_owned());
    check(&bed, "no remote `nobody`");
    bed.wish.remote = None;
    for url in ["ext::sh -c true", "-x", "--upload-pack=x"] {
        bed.in_checkout(&["config", "remote.origin.url", url]);
        check(&bed, "does not use a remote");
    }
    let bed = Bed::new();
    bed.in_checkout(&["config", "extensions.partialClone", "origin"]);
    bed.in_checkout(&["config", "core.repositoryFormatVersion", "1"]);
    check(&bed, "partial clone");
}

#[test]
fn a_remote_whose_address_changes_is_asked_about() {
    let bed = Bed::new();
    bed.repo().newest_base().unwrap();
    bed.git(bed.path(), &["clone", "--quiet", "--bare", "origin.git", "evil.git"]);
    for name in ["url", "pushurl"] {
        let evil = bed.path().join("evil.git");
        bed.in_checkout(&["config", &format!("remote.origin.{name}"), evil.to_str().unwrap()]);
        let Err(RepoError::NeedsHuman { why, hint }) = bed.open() else { panic!("{name}") };
        assert!(why.contains("evil.git") && hint.contains("rm "), "{why} {hint}");
        let right = bed.path().join("origin.git");
        bed.in_checkout(&["config", &format!("remote.origin.{name}"), right.to_str().unwrap()]);
    }
    bed.repo().newest_base().unwrap();
}
