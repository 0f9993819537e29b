//! Commits that are made from their parts.

use std::time::{SystemTime, UNIX_EPOCH};

use super::commit_id::CommitId;
use super::error::RepoError;
use super::git_command::{GitCommands, ObjectStore};

/// The parts of a commit as bytes, so that texts of other people stay unchanged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CommitParts {
    pub(super) tree: String,
    pub(super) parents: Vec<CommitId>,
    /// Name, mail address, time.
    pub(super) author: Vec<u8>,
    pub(super) committer: Vec<u8>,
    pub(super) encoding: Option<Vec<u8>>,
    pub(super) message: Vec<u8>,
}

/// The author or committer of a commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CommitIdentity {
    name: String,
    email: String,
}

impl CommitIdentity {
    /// Returns an identity without characters that would end a name or an address. hookloop's own is the default.
    pub(super) fn new(name: Option<&str>, email: Option<&str>) -> CommitIdentity {
        let clean = |text: Option<&str>, none: &str| {
            let fits = |c: &char| !c.is_control() && !"<>".contains(*c);
            let text: String = text.unwrap_or_default().chars().filter(fits).collect();
            let text = text.trim();
            if text.is_empty() { none.to_owned() } else { text.to_owned() }
        };
        let (name, email) = (clean(name, "hookloop"), clean(email, "hookloop@localhost"));
        CommitIdentity { name, email }
    }

    /// Returns the line of a commit with this time.
    pub(super) fn at(&self, time: &[u8]) -> Vec<u8> {
        let mut line = format!("{} <{}> ", self.name, self.email).into_bytes();
        line.extend_from_slice(time);
        line
    }
}

impl CommitParts {
    fn parse(bytes: &[u8]) -> Option<CommitParts> {
        let mut parts = CommitParts {
            tree: String::new(),
            parents: Vec::new(),
            author: Vec::new(),
            committer: Vec::new(),
            encoding: None,
            message: Vec::new(),
        };
        let mut rest = bytes;
        loop {
            let end = rest.iter().position(|byte| *byte == b'\n')?;
            let (line, after) = (&rest[..end], &rest[end + 1..]);
            rest = after;
            if line.is_empty() {
                break;
            }
            let space = line.iter().position(|byte| *byte == b' ')?;
            let (name, value) = (&line[..space], &line[space + 1..]);
            let text = || String::from_utf8_lossy(value).into_owned();
            match name {
                b"tree" => parts.tree = text(),
                b"parent" => parts.parents.push(text().parse().ok()?),
                b"author" => parts.author = value.to_vec(),
                b"committer" => parts.committer = value.to_vec(),
                b"encoding" => parts.encoding = Some(value.to_vec()),
                // A signature would not be valid for the new commit.
                _ => {}
            }
        }
        parts.message = rest.to_vec();
        Some(parts)
    }

    fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = format!("tree {}\n", self.tree).into_bytes();
        let mut line = |name: &str, value: &[u8]| {
            bytes.extend_from_slice(name.as_bytes());
            bytes.push(b' ');
            bytes.extend_from_slice(value);
            bytes.push(b'\n');
        };
        for parent in &self.parents {
            line("parent", parent.as_str().as_bytes());
        }
        line("author", &self.author);
        line("committer", &self.committer);
        if let Some(encoding) = &self.encoding {
            line("encoding", encoding);
        }
        bytes.push(b'\n');
        bytes.extend_from_slice(&self.message);
        bytes
    }

    /// Returns the time of the commit.
    pub(super) fn committed_at(&self) -> &[u8] {
        let after = self.committer.iter().rposition(|byte| *byte == b'>');
        let time = after.map_or(&b"0 +0000"[..], |at| &self.committer[at + 1..]);
        time.trim_ascii()
    }
}

/// Returns a message in the form of a commit.
pub(super) fn message(text: &str) -> Vec<u8> {
    let mut bytes: Vec<u8> = text.trim().bytes().filter(|byte| *byte != 0).collect();
    bytes.push(b'\n');
    bytes
}

/// Returns the time in the form of a commit.
pub(super) fn now() -> Vec<u8> {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    format!("{} +0000", since.as_secs()).into_bytes()
}

impl GitCommands<'_> {
    pub(super) fn parts_of(&self, commit: &CommitId) -> Result<CommitParts, RepoError> {
        let bytes = self.private_repo(&["cat-file", "commit", commit.as_str()]).long().bytes()?;
        let unread = || RepoError::permanent(format!("commit {commit} can't be read"));
        CommitParts::parse(&bytes).ok_or_else(unread)
    }

    /// Makes a commit. The same parts make the same commit.
    pub(super) fn make_commit(
        &self,
        parts: &CommitParts,
        objects: ObjectStore,
    ) -> Result<CommitId, RepoError> {
        // Old commits may violate today's rules of git, and are kept nevertheless.
        let args = ["hash-object", "-w", "-t", "commit", "--literally", "--stdin"];
        self.private_repo(&args).objects(objects).stdin(parts.to_bytes()).commit()
    }

    /// Returns the user's configured identity.
    pub(super) fn identity(&self) -> Result<CommitIdentity, RepoError> {
        let of = |name: &str| {
            let local = self.setting(name)?;
            if local.is_some() {
                return Ok(local);
            }
            let said = self.private_repo(&["config", "--get", name]).said()?;
            let text = String::from_utf8_lossy(&said.stdout).trim_end().to_owned();
            Ok::<_, RepoError>((said.code == 0).then_some(text))
        };
        let (name, email) = (of("user.name")?, of("user.email")?);
        Ok(CommitIdentity::new(name.as_deref(), email.as_deref()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_commit_is_rewritten_unchanged_except_for_its_signature() {
        let (tree, parent) = ("a".repeat(40), "b".repeat(40));
        let head = format!(
            "tree {tree}\nparent {parent}\nauthor A <a> 1 +0100\ncommitter B <b> 2 -0300\n"
        );
        let signed =
            format!("{head}gpgsig -----BEGIN\n x\n -----END\nencoding latin1\n\nmü\n\nmore");
        let parts = CommitParts::parse(signed.as_bytes()).unwrap();
        assert_eq!(parts.committed_at(), b"2 -0300");
        let plain = format!("{head}encoding latin1\n\nmü\n\nmore");
        assert_eq!(parts.to_bytes(), plain.as_bytes());
        assert_eq!(CommitParts::parse(&parts.to_bytes()), Some(parts));
        assert_eq!(CommitParts::parse(b"tree x\n"), None);
    }

    #[test]
    fn commit_identities_are_sanitized_and_have_defaults() {
        let check = |name, email, line: &str| {
            assert_eq!(CommitIdentity::new(name, email).at(b"1 +0000"), line.as_bytes());
        };
        check(Some("A B"), Some("a@b"), "A B <a@b> 1 +0000");
        check(Some("A> <x\n"), Some("<>"), "A x <hookloop@localhost> 1 +0000");
        check(None, None, "hookloop <hookloop@localhost> 1 +0000");
    }

    #[test]
    fn only_full_commit_ids_are_parsed() {
        for bad in ["", "HEAD", "-x", &"a".repeat(39), &"A".repeat(40), &"g".repeat(40)] {
            assert!(bad.parse::<CommitId>().is_err(), "{bad}");
        }
        assert!("0".repeat(40).parse::<CommitId>().is_ok());
        assert!("f".repeat(64).parse::<CommitId>().is_ok());
    }
}
