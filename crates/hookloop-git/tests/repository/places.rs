//! Repositories of all kinds.

use std::fs;

use hookloop_git::repo::RepoError;

use crate::course::course;
use crate::fixture::{RepositoryFixture, read, task, write};

#[test]
fn a_shallow_clone_is_supported_and_stays_shallow() {
    let fixture = RepositoryFixture::new();
    for number in 0..3 {
        fixture.others_change("history", &number.to_string());
    }
    fs::remove_dir_all(fixture.checkout()).unwrap();
    let url = format!("file://{}", fixture.path().join("origin.git").display());
    fixture.git(fixture.path(), &["clone", "--quiet", "--depth=1", &url, "checkout"]);
    let shallow = fs::read(fixture.checkout().join(".git/shallow")).unwrap();
    course(&fixture, &|_| {});
    assert_eq!(fs::read(fixture.checkout().join(".git/shallow")).unwrap(), shallow);
    assert_eq!(fixture.in_checkout(&["rev-list", "--count", "HEAD"]), "1");
    fixture.in_checkout(&["fsck"]);
    // The user may fetch the rest at any time.
    fixture.in_checkout(&["fetch", "--quiet", "--unshallow"]);
    let w = fixture.repo().worktree(&task("later")).unwrap();
    fixture.git(&w.path, &["log", "--oneline"]);
}

#[test]
fn a_linked_worktree_of_the_user_is_supported() {
    let mut fixture = RepositoryFixture::new();
    fixture.in_checkout(&["worktree", "add", "--quiet", "-b", "linked", "../linked"]);
    fixture.root = fixture.path().join("linked");
    course(&fixture, &|_| {});
    assert_eq!(fixture.git(&fixture.root, &["status", "--porcelain"]), "");
    assert_eq!(fixture.git(&fixture.root, &["branch", "--show-current"]), "linked");
}

#[test]
fn a_project_in_a_subdirectory_is_supported() {
    let mut fixture = RepositoryFixture::new();
    fixture.others_change("deep/project/hookloop.yaml", "version: 1\n");
    fixture.in_checkout(&["pull", "--quiet"]);
    let checkout = fixture.checkout();
    fixture.root = checkout.join("deep/project");
    fs::write(fixture.root.join(".env"), "here").unwrap();
    fixture.options.copy = vec![".env".to_owned()];
    course(&fixture, &|w| {
        assert_eq!(w.project, w.path.join("deep/project"));
        assert_eq!(fs::read_to_string(w.project.join(".env")).unwrap(), "here");
    });
}

#[test]
fn submodules_are_unchanged() {
    let fixture = RepositoryFixture::new();
    fixture.git(fixture.path(), &["clone", "--quiet", "origin.git", "part"]);
    let other = fixture.path().join("other");
    fixture.git(&other, &["submodule", "--quiet", "add", "../origin.git", "sub"]);
    fixture.save("other", "sub");
    fixture.git(&other, &["push", "--quiet", "origin", "main"]);
    fixture.in_checkout(&["pull", "--quiet"]);
    fixture.in_checkout(&["submodule", "--quiet", "update", "--init"]);
    let linked = fixture.in_checkout(&["ls-tree", "HEAD", "sub"]);
    course(&fixture, &|w| {
        assert_eq!(fs::read_dir(w.path.join("sub")).unwrap().count(), 0);
        assert_eq!(fixture.git(&w.path, &["ls-tree", "HEAD", "sub"]), linked);
    });
    let repo = fixture.repo();
    let base = repo.newest_base().unwrap();
    let tree = fixture.git(&fixture.path().join("origin.git"), &["ls-tree", base.as_str(), "sub"]);
    assert_eq!(tree, linked);
}

#[test]
fn commits_have_a_default_author_without_a_user_config() {
    let fixture = RepositoryFixture::new();
    // The author of the target's commits has a name, but the user has none.
    for name in ["user.name", "user.email"] {
        fixture.git(&fixture.path().join("other"), &["config", name, "other"]);
    }
    fs::remove_file(fixture.path().join("home/.gitconfig")).unwrap();
    course(&fixture, &|_| {});
    let log = fixture
        .git(&fixture.path().join("origin.git"), &["log", "-1", "--format=%an <%ae>", "main"]);
    assert_eq!(log, "hookloop <hookloop@localhost>");
}

#[test]
fn a_relative_remote_url_and_another_base_branch_are_supported() {
    let mut fixture = RepositoryFixture::new();
    fixture.in_checkout(&["remote", "rename", "origin", "upstream"]);
    fixture.in_checkout(&["remote", "set-url", "upstream", "../origin.git"]);
    fixture.options.remote = Some("upstream".to_owned());
    course(&fixture, &|_| {});
    fixture.git(&fixture.path().join("origin.git"), &["branch", "next", "main"]);
    fixture.options.base = Some("next".to_owned());
    assert_eq!(fixture.repo().target().branch, "next");
    fixture.repo().newest_base().unwrap();
    fixture.options.base = Some("none".to_owned());
    let refused = fixture.repo().newest_base();
    assert!(refused.is_err(), "{refused:?}");
}

#[test]
fn a_sha256_repository_is_supported() {
    let fixture = RepositoryFixture::empty();
    let init = ["init", "--quiet", "--object-format=sha256", "--initial-branch=main"];
    fixture.git(fixture.path(), &[&init[..], &["--bare", "origin.git"]].concat());
    fixture.git(fixture.path(), &["clone", "--quiet", "origin.git", "other"]);
    fs::write(fixture.path().join("other/file"), "1\n2\n3\n4\n5\n").unwrap();
    fixture.save("other", "first");
    fixture.git(&fixture.path().join("other"), &["push", "--quiet", "origin", "main"]);
    fixture.git(fixture.path(), &["clone", "--quiet", "origin.git", "checkout"]);
    course(&fixture, &|_| {});
}

#[test]
fn filters_and_excludes_of_the_users_git_config_apply() {
    let fixture = RepositoryFixture::new();
    let own = "[user]\n\tname = User\n\temail = u@e\n\
        [core]\n\texcludesFile = ~/ignored\n\
        [filter \"rot\"]\n\tclean = tr a-z A-Z\n\tsmudge = tr A-Z a-z\n\trequired\n";
    fs::write(fixture.path().join("home/.gitconfig"), own).unwrap();
    fs::write(fixture.path().join("home/ignored"), "*.mine\n").unwrap();
    fixture.others_change(".gitattributes", "*.rot filter=rot\n");
    fixture.others_change("a.rot", "text\n");
    let repo = fixture.repo();
    let w = repo.worktree(&task("t1")).unwrap();
    assert_eq!(fixture.git(&w.path, &["show", "HEAD:a.rot"]), "TEXT");
    assert_eq!(read(&w, "a.rot"), "text\n");
    write(&w, "b.rot", "more\n");
    write(&w, "x.mine", "mine\n");
    repo.commit_all(&w, "more").unwrap().unwrap();
    assert_eq!(fixture.git(&w.path, &["show", "HEAD:b.rot"]), "MORE");
    assert_eq!(fixture.git(&w.path, &["ls-files", "x.mine"]), "");
}

#[test]
fn line_endings_follow_the_repository_config() {
    let fixture = RepositoryFixture::new();
    fixture.in_checkout(&["config", "core.autocrlf", "true"]);
    let w = fixture.repo().worktree(&task("t1")).unwrap();
    assert_eq!(read(&w, "file"), "1\r\n2\r\n3\r\n4\r\n5\r\n");
    assert_eq!(fixture.git(&w.path, &["status", "--porcelain"]), "");
}

#[test]
fn git_variables_of_the_environment_do_not_redirect_git() {
    let mut fixture = RepositoryFixture::new();
    fixture.git(fixture.path(), &["init", "--quiet", "elsewhere"]);
    let elsewhere = fixture.path().join("elsewhere");
    for (name, path) in [
        ("GIT_DIR", ".git"),
        ("GIT_WORK_TREE", ""),
        ("GIT_INDEX_FILE", ".git/index"),
        ("GIT_OBJECT_DIRECTORY", ".git/objects"),
        ("GIT_COMMON_DIR", ".git"),
    ] {
        fixture.set(name, elsewhere.join(path));
    }
    fixture.set("GIT_CONFIG_PARAMETERS", "'core.worktree'='/'");
    fixture.set("GIT_NAMESPACE", "x");
    let repo = fixture.repo();
    let w = repo.worktree(&task("t1")).unwrap();
    write(&w, "file", "work\n");
    repo.commit_all(&w, "work").unwrap().unwrap();
    let head = repo.head(&w).unwrap();
    repo.push(&w.branch, &head).unwrap();
    let at_remote = fixture.path().join("origin.git/refs/heads/hookloop/t1");
    assert_eq!(fs::read_to_string(at_remote).unwrap().trim(), head.as_str());
}

#[test]
fn an_unusable_repository_needs_a_person_with_a_hint() {
    let check = |fixture: &RepositoryFixture, expected: &str| match fixture.open() {
        Err(RepoError::NeedsHuman { why, hint }) => {
            assert!(why.contains(expected) && !hint.is_empty(), "{why}");
        }
        other => panic!("{expected}: {other:?}"),
    };
    let fixture = RepositoryFixture::empty();
    fs::create_dir(&fixture.root).unwrap();
    check(&fixture, "not in a git repository");
    fixture.git(&fixture.root, &["init", "--quiet", "--initial-branch=odd"]);
    check(&fixture, "no commit yet");
    fixture.git(&fixture.root, &["commit", "--quiet", "--allow-empty", "--message=First"]);
    check(&fixture, "which branch");
    let mut fixture = RepositoryFixture::new();
    fixture.options.remote = Some("nobody".to_owned());
    check(&fixture, "no remote `nobody`");
    fixture.options.remote = None;
    for url in ["ext::sh -c true", "-x", "--upload-pack=x"] {
        fixture.in_checkout(&["config", "remote.origin.url", url]);
        check(&fixture, "does not use a remote");
    }
    let fixture = RepositoryFixture::new();
    fixture.in_checkout(&["config", "extensions.partialClone", "origin"]);
    fixture.in_checkout(&["config", "core.repositoryFormatVersion", "1"]);
    check(&fixture, "partial clone");
}

#[test]
fn a_changed_remote_url_needs_a_person() {
    let fixture = RepositoryFixture::new();
    fixture.repo().newest_base().unwrap();
    fixture.git(fixture.path(), &["clone", "--quiet", "--bare", "origin.git", "evil.git"]);
    for name in ["url", "pushurl"] {
        let evil = fixture.path().join("evil.git");
        fixture.in_checkout(&["config", &format!("remote.origin.{name}"), evil.to_str().unwrap()]);
        let Err(RepoError::NeedsHuman { why, hint }) = fixture.open() else { panic!("{name}") };
        assert!(why.contains("evil.git") && hint.contains("rm "), "{why} {hint}");
        let right = fixture.path().join("origin.git");
        fixture.in_checkout(&["config", &format!("remote.origin.{name}"), right.to_str().unwrap()]);
    }
    fixture.repo().newest_base().unwrap();
}
