//! Makes absolute paths below the project relative, so that names are equal in every checkout.

use std::borrow::Cow;
use std::path::Path;

/// The prefix of a path that is written as an address.
const FILE_SCHEME: &str = "file://";

/// The directory of the project, in the spellings that a tool may print.
#[derive(Debug)]
pub(crate) struct ProjectRoot {
    /// Each ends with `/`, longest first.
    prefixes: Vec<String>,
}

impl ProjectRoot {
    pub(crate) fn new(root: &Path) -> ProjectRoot {
        let real = root.canonicalize().ok();
        let spellings = [Some(root.to_owned()), real];
        let prefix = |path: &Path| Some(format!("{}/", path.to_str()?.trim_end_matches('/')));
        let mut prefixes: Vec<String> =
            spellings.iter().flatten().filter_map(|path| prefix(path)).collect();
        prefixes.retain(|prefix| prefix.starts_with('/') && prefix.len() > 1);
        prefixes.sort_by_key(|prefix| std::cmp::Reverse(prefix.len()));
        prefixes.dedup();
        ProjectRoot { prefixes }
    }

    /// Returns a text in which paths below the project are relative.
    pub(crate) fn relative<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let mut relative = Cow::Borrowed(text);
        for prefix in &self.prefixes {
            if relative.contains(prefix.as_str()) {
                relative = Cow::Owned(without(prefix, &relative));
            }
        }
        relative
    }
}

/// Returns a text without a prefix of paths, and without the scheme before the prefix.
fn without(prefix: &str, text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(prefix) {
        let bare = before.strip_suffix(FILE_SCHEME).unwrap_or(before);
        if bare.ends_with(is_path_char) {
            kept.push_str(before);
            kept.push_str(prefix);
        } else {
            kept.push_str(bare);
        }
        rest = after;
    }
    kept.push_str(rest);
    kept
}

/// Whether a character before a path shows that the path began earlier.
fn is_path_char(char: char) -> bool {
    char.is_alphanumeric() || matches!(char, '/' | '.' | '_' | '-' | '~')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_paths_below_the_project_become_relative() {
        let root = ProjectRoot::new(Path::new("/home/ada/project/"));
        for (text, expected) in [
            ("/home/ada/project/src/a.rs", "src/a.rs"),
            ("file:///home/ada/project/src/a.rs", "src/a.rs"),
            ("at (/home/ada/project/a.js:1) and /home/ada/project/b.js", "at (a.js:1) and b.js"),
            ("/home/ada/project2/a.rs", "/home/ada/project2/a.rs"),
            ("/mnt/home/ada/project/a.rs", "/mnt/home/ada/project/a.rs"),
            ("/home/ada/project", "/home/ada/project"),
            ("", ""),
        ] {
            assert_eq!(root.relative(text), expected);
        }
    }

    #[test]
    fn paths_stay_if_the_root_is_the_file_system_or_unknown() {
        for root in ["/", "", "relative"] {
            assert_eq!(ProjectRoot::new(Path::new(root)).prefixes.len(), 0, "{root}");
            assert_eq!(ProjectRoot::new(Path::new(root)).relative("/a/b"), "/a/b");
        }
    }

    #[test]
    fn the_real_path_of_a_linked_project_becomes_relative_as_well() {
        let directory = tempfile::tempdir().unwrap();
        let real = directory.path().canonicalize().unwrap().join("real");
        std::fs::create_dir(&real).unwrap();
        let link = real.with_file_name("link");
        std::os::unix::fs::symlink(&real, &link).unwrap();
        let root = ProjectRoot::new(&link);
        for spelling in [&real, &link] {
            assert_eq!(root.relative(&spelling.join("a.py").display().to_string()), "a.py");
        }
    }
}
