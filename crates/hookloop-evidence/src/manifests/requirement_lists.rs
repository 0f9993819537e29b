//! Lists of Python requirements: those of the base, then those of packages that only the work has.

use std::collections::HashSet;

/// Returns the list of the base with the requirements of other packages in the work.
pub(super) fn merged<T>(base: Vec<T>, work: Vec<T>, text_of: impl Fn(&T) -> String) -> Vec<T> {
    let known: HashSet<String> = base.iter().map(|item| package_name(&text_of(item))).collect();
    let is_new = |item: &T| !known.contains(&package_name(&text_of(item)));
    let added: Vec<T> = work.into_iter().filter(is_new).collect();
    base.into_iter().chain(added).collect()
}

/// Returns the name of a requirement's package as indexes compare it, such as `ruamel-yaml`.
fn package_name(requirement: &str) -> String {
    let is_part = |char: &char| char.is_ascii_alphanumeric() || matches!(char, '.' | '_' | '-');
    let requirement = requirement.trim();
    let name: String = requirement.chars().take_while(is_part).collect();
    if name.is_empty() {
        return requirement.to_owned();
    }
    name.to_lowercase().replace(['_', '.'], "-")
}

/// Whether the name of a group of dependencies says that it is for tests.
pub(super) fn is_test_group(name: &str) -> bool {
    matches!(name.to_lowercase().as_str(), "test" | "tests" | "testing" | "dev" | "develop")
}
