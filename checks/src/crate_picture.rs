//! The dependency arrows between crates, as ARCHITECTURE.md shows them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use crate::CheckError;
use crate::workspace_members::MemberPackage;

/// The line before the fence of the picture.
pub const PICTURE_MARKER: &str = "<!-- checks picture -->";
const FENCE: &str = "```";

/// Members that only tests may depend on.
pub const TEST_ONLY_MEMBERS: [&str; 2] = ["hookloop-testbed", "hookloop-testkit"];

/// Returns the dependencies of each member within the workspace, without dev-dependencies.
pub fn crate_arrows(members: &[MemberPackage]) -> BTreeMap<&str, BTreeSet<&str>> {
    let names: BTreeSet<&str> = members.iter().map(|member| member.name.as_str()).collect();
    let arrows = |member: &MemberPackage| {
        let built_with = member.dependencies.iter().filter(|dependency| {
            dependency.path.is_some() && dependency.kind.as_deref() != Some("dev")
        });
        let of_workspace = built_with.filter_map(|found| names.get(found.name.as_str()).copied());
        of_workspace.collect::<BTreeSet<&str>>()
    };
    members.iter().map(|member| (member.name.as_str(), arrows(member))).collect()
}

/// Returns the picture: one line per crate, topmost crates first.
pub fn picture(members: &[MemberPackage], root: &Path) -> String {
    let arrows = crate_arrows(members);
    let is_product = |name: &str| {
        members.iter().any(|member| {
            member.name == name
                && member.is_product(root)
                && !TEST_ONLY_MEMBERS.contains(&member.name.as_str())
        })
    };
    let mut product: Vec<&str> = arrows.keys().copied().filter(|name| is_product(name)).collect();
    product.sort_by_key(|name| (std::cmp::Reverse(height(&arrows, name)), *name));
    let width = product.iter().map(|name| name.len()).max().unwrap_or_default();
    let line = |name: &&str| {
        let below: Vec<&str> = arrows[*name].iter().copied().collect();
        let below = if below.is_empty() { "nothing".to_owned() } else { below.join(", ") };
        format!("{name:width$} → {below}\n")
    };
    product.iter().map(line).collect()
}

/// Returns the number of crates on the longest path down.
fn height(arrows: &BTreeMap<&str, BTreeSet<&str>>, name: &str) -> usize {
    let below = arrows.get(name).into_iter().flatten();
    below.map(|below| height(arrows, below) + 1).max().unwrap_or_default()
}

/// Returns the picture in a document.
pub fn drawn_picture(path: &Path) -> Result<String, CheckError> {
    let text = read(path)?;
    let (start, end) = picture_range(&text, path)?;
    Ok(text[start..end].to_owned())
}

/// Replaces the picture in a document.
pub fn draw_picture(path: &Path, picture: &str) -> Result<(), CheckError> {
    let mut text = read(path)?;
    let (start, end) = picture_range(&text, path)?;
    text.replace_range(start..end, picture);
    fs::write(path, text).map_err(|source| CheckError::Read { path: path.to_owned(), source })
}

fn read(path: &Path) -> Result<String, CheckError> {
    fs::read_to_string(path).map_err(|source| CheckError::Read { path: path.to_owned(), source })
}

/// Returns where the lines between the fences begin and end.
fn picture_range(text: &str, path: &Path) -> Result<(usize, usize), CheckError> {
    let missing = || CheckError::NoPicture { path: path.to_owned(), marker: PICTURE_MARKER };
    let marker = text.find(PICTURE_MARKER).ok_or_else(missing)?;
    let opened = marker + text[marker..].find(FENCE).ok_or_else(missing)?;
    let start = opened + text[opened..].find('\n').ok_or_else(missing)? + 1;
    let end = start + text[start..].find(FENCE).ok_or_else(missing)?;
    Ok((start, end))
}
