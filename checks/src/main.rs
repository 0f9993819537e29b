//! Prints the figures of the house rules.

use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use hookloop_checks::CheckError;
use hookloop_checks::code_sizes::{FileSize, file_lines, function_lines, percentile};
use hookloop_checks::crate_picture::{draw_picture, picture};
use hookloop_checks::house_rules::{
    FUNCTION_LINES_MAX, PICTURE_FILE, RATCHETS_FILE, all_figures, all_sources, circle_arrows,
    product_sources,
};
use hookloop_checks::prose::{ProseFigures, prose_by_area};
use hookloop_checks::public_items::public_items;
use hookloop_checks::ratchet::Ratchets;
use hookloop_checks::type_names::TypeNames;
use hookloop_checks::workspace_members::{MemberPackage, workspace_members, workspace_root};

const USAGE: &str = "usage: checks COMMAND

  arrows     Print the arrows between modules that close circles
  sizes      Print the lines of files and functions
  names      Print the types that share a name
  public     Print the public items that no other crate names
  prose      Print the sentences without a noun as subject
  figures    Print one line for each figure
  picture    Print the arrows between crates; with --write, into ARCHITECTURE.md
  renew      Lower the ratchets to the figures of today
";

/// Number of the longest files and functions that `sizes` prints.
const LONGEST: usize = 20;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match run(&words) {
        Ok(text) => {
            // A reader that has read enough closes the pipe.
            let _ = io::stdout().write_all(text.as_bytes());
            ExitCode::SUCCESS
        }
        Err(error) => {
            let _ = writeln!(io::stderr(), "error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(words: &[&str]) -> Result<String, CheckError> {
    let root = workspace_root();
    let members = workspace_members(&root)?;
    match words {
        ["arrows"] => arrows(&root, &members),
        ["sizes"] => sizes(&root, &members),
        ["names"] => names(&root, &members),
        ["public"] => public(&root, &members),
        ["prose"] => prose(&root),
        ["figures"] => figures(&root, &members),
        ["picture"] => Ok(picture(&members, &root)),
        ["picture", "--write"] => {
            draw_picture(&root.join(PICTURE_FILE), &picture(&members, &root))?;
            Ok(String::new())
        }
        ["renew"] => renew(&root, &members),
        _ => Ok(USAGE.to_owned()),
    }
}

fn arrows(root: &Path, members: &[MemberPackage]) -> Result<String, CheckError> {
    let arrows = circle_arrows(&product_sources(root, members)?);
    let lines: String = arrows.iter().map(|arrow| format!("{arrow}\n")).collect();
    Ok(format!("{lines}{} arrows close circles\n", arrows.len()))
}

fn prose(root: &Path) -> Result<String, CheckError> {
    let mut text = String::new();
    for (area, figures) in prose_by_area(root)? {
        let ProseFigures { words, subjects, headless } = figures;
        text.push_str(&format!(
            "{area}: {words} words, {} subjects, {headless} headless\n",
            subjects.len()
        ));
        subjects.iter().for_each(|sentence| text.push_str(&format!("  {sentence}\n")));
    }
    Ok(text)
}

fn sizes(root: &Path, members: &[MemberPackage]) -> Result<String, CheckError> {
    let mut files = product_sources(root, members)?.files;
    let mut text = summary(&files);
    files.sort_by_key(|file| std::cmp::Reverse(file.lines));
    for file in files.iter().take(LONGEST) {
        text.push_str(&format!("{:5} {}\n", file.lines, file.path.display()));
    }
    let each = files.iter().flat_map(|file| file.functions.iter().map(move |one| (one, file)));
    let mut functions: Vec<_> = each.collect();
    functions.sort_by_key(|(function, _)| std::cmp::Reverse(function.lines));
    for (function, file) in functions.iter().take(LONGEST) {
        let place = file.path.display();
        text.push_str(&format!("{:5} {} in {place}\n", function.lines, function.name));
    }
    Ok(text)
}

fn summary(files: &[FileSize]) -> String {
    let line = |name: &str, lines: Vec<usize>| {
        let count = lines.len();
        let total: usize = lines.iter().sum();
        let [median, p95, max] = [50, 95, 100].map(|percent| percentile(lines.clone(), percent));
        format!("{name}: {count}, {total} lines, median {median}, p95 {p95}, max {max}\n")
    };
    let functions = function_lines(files);
    let longer = functions.iter().filter(|lines| **lines as u64 > FUNCTION_LINES_MAX).count();
    let figures = line("files", file_lines(files)) + &line("functions", functions);
    format!("{figures}functions over {FUNCTION_LINES_MAX} lines: {longer}\n")
}

fn names(root: &Path, members: &[MemberPackage]) -> Result<String, CheckError> {
    let names = TypeNames::of(&product_sources(root, members)?);
    let mut text = String::new();
    for (name, places) in names.shared() {
        text.push_str(&format!("{name}\n"));
        text.extend(places.iter().map(|place| format!("  {place}\n")));
    }
    Ok(text + &shared_names(&names))
}

fn shared_names(names: &TypeNames) -> String {
    let (sharing, all) = (names.types_sharing(), names.types());
    let share = 100 * sharing / all.max(1);
    format!("{sharing} of {all} types share their name ({share} %)\n")
}

fn public(root: &Path, members: &[MemberPackage]) -> Result<String, CheckError> {
    let mut text = String::new();
    for items in public_items(&all_sources(root, members)?) {
        text.extend(items.unnamed.iter().map(|item| format!("{item}\n")));
        text.push_str(&unnamed_line(&items.crate_label, items.unnamed.len(), items.total));
    }
    Ok(text)
}

fn unnamed_line(label: &str, unnamed: usize, total: usize) -> String {
    format!("{label}: {unnamed} of {total} public items are named by no other crate or test\n")
}

fn figures(root: &Path, members: &[MemberPackage]) -> Result<String, CheckError> {
    let index = product_sources(root, members)?;
    let mut text = format!("arrows that close circles: {}\n", circle_arrows(&index).len());
    text.push_str(&summary(&index.files));
    text.push_str(&shared_names(&TypeNames::of(&index)));
    for items in public_items(&all_sources(root, members)?) {
        text.push_str(&unnamed_line(&items.crate_label, items.unnamed.len(), items.total));
    }
    Ok(text)
}

fn renew(root: &Path, members: &[MemberPackage]) -> Result<String, CheckError> {
    let path = root.join(RATCHETS_FILE);
    let renewed = Ratchets::read(&path)?.renew(&all_figures(root, members)?)?;
    renewed.write(&path)?;
    Ok(String::new())
}
