//! All rules and their limits, applied to the workspace.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::CheckError;
use crate::code_sizes::{FileSize, file_lines, function_lines, percentile};
use crate::import_circles::{ModuleArrow, back_arrows, sibling_arrows};
use crate::module_tree::{SourceIndex, TestCode, TreeSource};
use crate::prose::{prose_by_area, prose_figures};
use crate::public_items::{PublicItems, public_items};
use crate::ratchet::RuleFigures;
use crate::type_names::TypeNames;
use crate::workspace_members::{MemberPackage, MemberTarget};

pub const FILE_LINES_MEDIAN: u64 = 150;
pub const FILE_LINES_P95: u64 = 450;
pub const FILE_LINES_MAX: u64 = 700;
pub const FUNCTION_LINES_P95: u64 = 45;
pub const FUNCTION_LINES_MAX: u64 = 80;

/// The file with the figures that are allowed above their bars, relative to the workspace.
pub const RATCHETS_FILE: &str = "checks/ratchets.txt";
/// The document with the picture of the crates, relative to the workspace.
pub const PICTURE_FILE: &str = "ARCHITECTURE.md";

/// Loads the libraries and programs below `crates/`, without tests.
pub fn product_sources(root: &Path, members: &[MemberPackage]) -> Result<SourceIndex, CheckError> {
    let is_wanted = |member: &MemberPackage, target: &MemberTarget| {
        member.is_product(root) && target.is_product()
    };
    load(root, members, TestCode::LeftOut, is_wanted)
}

/// Loads every target of the workspace, with all tests.
pub fn all_sources(root: &Path, members: &[MemberPackage]) -> Result<SourceIndex, CheckError> {
    load(root, members, TestCode::Included, |_, _| true)
}

fn load(
    root: &Path,
    members: &[MemberPackage],
    test_code: TestCode,
    is_wanted: impl Fn(&MemberPackage, &MemberTarget) -> bool,
) -> Result<SourceIndex, CheckError> {
    let mut index = SourceIndex::default();
    for member in members {
        for target in member.targets.iter().filter(|target| is_wanted(member, target)) {
            let crate_name = target.is_library().then(|| target.crate_name());
            let label = if target.is_library() || target.name == member.name {
                member.name.clone()
            } else {
                format!("{}/{}", member.name, target.name)
            };
            let source = TreeSource {
                crate_name,
                label,
                file: target.src_path.clone(),
                is_product: member.is_product(root) && target.is_product(),
            };
            index.load(root, &source, test_code)?;
        }
    }
    Ok(index)
}

/// Returns the arrows that close circles, of all targets in the index.
pub fn circle_arrows(index: &SourceIndex) -> Vec<ModuleArrow> {
    let trees = 0..index.trees.len();
    trees.flat_map(|tree| back_arrows(&sibling_arrows(index, tree))).collect()
}

/// Returns the figures of import circles between sibling modules: the number of arrows to cut.
pub fn arrow_figures(arrows: &[ModuleArrow]) -> RuleFigures {
    let mut figures = BTreeMap::new();
    for arrow in arrows {
        *figures.entry(arrow.crate_label.clone()).or_default() += 1;
    }
    RuleFigures { kind: "arrows", bar: 0, figures }
}

/// Returns the sizes of files and functions.
pub fn size_figures(files: &[FileSize]) -> Vec<RuleFigures> {
    let mut functions: BTreeMap<String, u64> = BTreeMap::new();
    for file in files {
        for function in &file.functions {
            let name = format!("{}::{}", file.path.display(), function.name);
            let longest = functions.entry(name).or_default();
            *longest = (*longest).max(function.lines as u64);
        }
    }
    let by_file = files.iter().map(|file| (file.path.display().to_string(), file.lines as u64));
    let of_all = |kind, bar, lines: Vec<usize>, percent| RuleFigures {
        kind,
        bar,
        figures: BTreeMap::from([("all".to_owned(), percentile(lines, percent) as u64)]),
    };
    vec![
        of_all("file-lines-median", FILE_LINES_MEDIAN, file_lines(files), 50),
        of_all("file-lines-p95", FILE_LINES_P95, file_lines(files), 95),
        RuleFigures { kind: "file-lines", bar: FILE_LINES_MAX, figures: by_file.collect() },
        of_all("function-lines-p95", FUNCTION_LINES_P95, function_lines(files), 95),
        RuleFigures { kind: "function-lines", bar: FUNCTION_LINES_MAX, figures: functions },
    ]
}

/// Returns the number of types that share a name.
pub fn name_figures(names: &TypeNames) -> RuleFigures {
    let figures = BTreeMap::from([("all".to_owned(), names.types_sharing() as u64)]);
    RuleFigures { kind: "shared-type-names", bar: 0, figures }
}

/// Returns the number of public items per crate that no other crate and no test names.
pub fn public_figures(items: &[PublicItems]) -> RuleFigures {
    let figure = |items: &PublicItems| (items.crate_label.clone(), items.unnamed.len() as u64);
    RuleFigures { kind: "unnamed-public", bar: 0, figures: items.iter().map(figure).collect() }
}

/// Returns the figures of all rules that have ratchets.
pub fn all_figures(root: &Path, members: &[MemberPackage]) -> Result<Vec<RuleFigures>, CheckError> {
    let index = product_sources(root, members)?;
    let mut rules = vec![arrow_figures(&circle_arrows(&index))];
    rules.extend(size_figures(&index.files));
    rules.push(name_figures(&TypeNames::of(&index)));
    rules.push(public_figures(&public_items(&all_sources(root, members)?)));
    rules.extend(prose_figures(&prose_by_area(root)?));
    Ok(rules)
}

/// Returns the source files below `crates/` that no target loads, such as undeclared modules.
pub fn orphan_files(root: &Path, index: &SourceIndex) -> Result<Vec<PathBuf>, CheckError> {
    let known: BTreeSet<&Path> = index.files.iter().map(|file| file.path.as_path()).collect();
    let mut open = vec![root.join(crate::workspace_members::PRODUCT_DIRECTORY)];
    let mut orphans = Vec::new();
    while let Some(directory) = open.pop() {
        let read = |source| CheckError::Read { path: directory.clone(), source };
        for entry in std::fs::read_dir(&directory).map_err(read)? {
            let path = entry.map_err(read)?.path();
            let relative = path.strip_prefix(root).unwrap_or(&path);
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs")
                && !known.contains(relative)
            {
                orphans.push(relative.to_owned());
            }
        }
    }
    orphans.sort();
    Ok(orphans)
}
