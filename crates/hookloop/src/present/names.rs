//! Names in short: hashes, and lists of files and checks.

use hookloop_core::excerpt::first_names;

use crate::sanitize::plain;

/// Characters of a tree's or a commit's hash that are shown.
const HASH_SHOWN: usize = 10;
/// Names that a line lists.
const NAMES_SHOWN: usize = 4;

/// Returns the first characters of a hash; a shorter text stays whole.
pub(crate) fn short_hash(hash: &str) -> &str {
    hash.get(..HASH_SHOWN).unwrap_or(hash)
}

/// Returns the git tree that a receipt is for, as the end of a sentence.
pub(crate) fn on_tree(tree: Option<&str>) -> String {
    tree.map_or_else(|| "on files of an unknown tree".to_owned(), |tree| format!("on {tree}"))
}

/// Lists the first names, and counts the others.
pub(crate) fn some(names: &[String]) -> String {
    let names: Vec<_> = names.iter().map(|name| plain(name)).collect();
    first_names(&names, NAMES_SHOWN)
}
