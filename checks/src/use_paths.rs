//! The paths of `use` items, with groups expanded.

use syn::{ItemUse, UseTree, Visibility};

/// The path of one name in a `use`, or of a glob.
#[derive(Clone, Debug)]
pub struct UsePath {
    pub segments: Vec<String>,
    pub line: usize,
    pub is_public: bool,
}

/// The name that a leaf of a `use` binds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UseName {
    Name(String),
    Glob,
    /// `as _`
    Unnamed,
}

/// One path of a `use`.
#[derive(Clone, Debug)]
pub struct UseLeaf {
    pub name: UseName,
    pub path: UsePath,
}

/// Returns every path of a `use`, with groups expanded.
pub fn use_leaves(item: &ItemUse) -> Vec<UseLeaf> {
    let mut leaves = Vec::new();
    if item.leading_colon.is_none() {
        let is_public = matches!(item.vis, Visibility::Public(_));
        add_leaves(&item.tree, &mut Vec::new(), is_public, &mut leaves);
    }
    leaves
}

fn add_leaves(
    tree: &UseTree,
    before: &mut Vec<String>,
    is_public: bool,
    leaves: &mut Vec<UseLeaf>,
) {
    match tree {
        UseTree::Path(path) => {
            before.push(plain(&path.ident));
            add_leaves(&path.tree, before, is_public, leaves);
            before.pop();
        }
        UseTree::Group(group) => {
            for tree in &group.items {
                add_leaves(tree, before, is_public, leaves);
            }
        }
        UseTree::Name(name) => {
            let line = name.ident.span().start().line;
            let segments = with_last(before, &plain(&name.ident));
            let bound = segments.last().cloned().map_or(UseName::Unnamed, UseName::Name);
            leaves.push(UseLeaf { name: bound, path: UsePath { segments, line, is_public } });
        }
        UseTree::Rename(rename) => {
            let line = rename.ident.span().start().line;
            let segments = with_last(before, &plain(&rename.ident));
            let bound = plain(&rename.rename);
            let name = if bound == "_" { UseName::Unnamed } else { UseName::Name(bound) };
            leaves.push(UseLeaf { name, path: UsePath { segments, line, is_public } });
        }
        UseTree::Glob(glob) => {
            let line = glob.star_token.spans[0].start().line;
            let path = UsePath { segments: before.clone(), line, is_public };
            leaves.push(UseLeaf { name: UseName::Glob, path });
        }
    }
}

/// Returns the path with its last name; `self` after a module is the module.
fn with_last(before: &[String], last: &str) -> Vec<String> {
    let mut segments = before.to_vec();
    if last != "self" || segments.is_empty() {
        segments.push(last.to_owned());
    }
    segments
}

/// Returns an identifier without `r#`.
pub fn plain(ident: &proc_macro2::Ident) -> String {
    let text = ident.to_string();
    text.strip_prefix("r#").map_or_else(|| text.clone(), str::to_owned)
}
