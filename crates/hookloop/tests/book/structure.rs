//! Checks that every page is in the table of contents, and that all links and pictures exist.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Component, Path, PathBuf};

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

use crate::documents::root;

/// The links, pictures and anchors of a document.
struct Document {
    links: Vec<String>,
    anchors: BTreeSet<String>,
}

impl Document {
    fn read(text: &str) -> Document {
        let mut document = Document { links: Vec::new(), anchors: BTreeSet::new() };
        let mut heading: Option<String> = None;
        let mut seen: BTreeMap<String, u32> = BTreeMap::new();
        for event in Parser::new_ext(text, Options::ENABLE_TABLES) {
            match event {
                Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                    document.links.push(dest_url.into_string());
                }
                Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
                Event::End(TagEnd::Heading(_)) => {
                    let slug = slug(&heading.take().unwrap_or_default());
                    let count = seen.entry(slug.clone()).or_default();
                    let anchor = if *count == 0 { slug } else { format!("{slug}-{count}") };
                    *count += 1;
                    document.anchors.insert(anchor);
                }
                Event::Text(text) | Event::Code(text) => {
                    if let Some(heading) = &mut heading {
                        heading.push_str(&text);
                    }
                }
                _ => {}
            }
        }
        document
    }
}

/// Returns the anchor of a heading, as mdbook and forges generate it.
fn slug(heading: &str) -> String {
    let letters = heading.trim().chars().filter_map(|c| match c {
        c if c.is_alphanumeric() || c == '_' || c == '-' => Some(c.to_ascii_lowercase()),
        c if c.is_whitespace() => Some('-'),
        _ => None,
    });
    letters.collect()
}

/// Returns the pages in a directory of `docs/`, relative to that directory.
pub(crate) fn pages_under(directory: &str) -> Vec<String> {
    let mut pages = Vec::new();
    let mut directories = vec![root().join("docs").join(directory)];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(&directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                directories.push(path);
            } else if path.extension().is_some_and(|ending| ending == "md") {
                let page = path.strip_prefix(root().join("docs")).unwrap();
                pages.push(page.to_str().unwrap().to_owned());
            }
        }
    }
    pages.sort();
    pages
}

/// Returns a path without `..`, or none if the path leaves the repository.
fn tidy(path: &Path) -> Option<PathBuf> {
    let mut tidied = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => tidied.pop().then_some(())?,
            Component::CurDir => {}
            part => tidied.push(part),
        }
    }
    Some(tidied)
}

#[test]
fn every_page_is_in_the_table_of_contents_once() {
    let summary = fs::read_to_string(root().join("docs/SUMMARY.md")).unwrap();
    let mut listed = Document::read(&summary).links;
    listed.sort();
    let mut pages = pages_under("");
    pages.retain(|page| page != "SUMMARY.md");
    assert_eq!(listed, pages);
}

/// Pages of the book may link only to pages of the book, because the rest of the repository has no
/// address in the book. On a forge, the same links lead to the same files.
#[test]
fn every_link_leads_somewhere() {
    let docs = pages_under("").into_iter().map(|page| format!("docs/{page}"));
    let top = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md"];
    let all: Vec<String> = docs.chain(top.map(str::to_owned)).collect();
    let read = |page: &str| Document::read(&fs::read_to_string(root().join(page)).unwrap());
    let documents: BTreeMap<&str, Document> =
        all.iter().map(|page| (page.as_str(), read(page))).collect();
    let mut wrong = Vec::new();
    for (page, document) in &documents {
        for link in document.links.iter().filter(|link| !link.contains("://")) {
            let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
            let target = match path {
                "" => Some(PathBuf::from(page)),
                path => tidy(&Path::new(page).parent().unwrap().join(path)),
            };
            let leads = target.is_some_and(|target| {
                let name = target.to_str().unwrap();
                let is_inside = !page.starts_with("docs/") || name.starts_with("docs/");
                let has_anchor = || match documents.get(name) {
                    Some(found) => anchor.is_empty() || found.anchors.contains(anchor),
                    None => anchor.is_empty() && !name.ends_with(".md"),
                };
                is_inside && root().join(&target).is_file() && has_anchor()
            });
            if !leads {
                wrong.push(format!("{page}: {link}"));
            }
        }
    }
    assert!(wrong.is_empty(), "broken links:\n{}", wrong.join("\n"));
    assert!(documents.values().map(|document| document.links.len()).sum::<usize>() > 200);
}

/// Checks that every file and anchor that a page includes exists.
#[test]
fn what_is_included_is_there() {
    let mut count = 0;
    for page in pages_under("") {
        let text = fs::read_to_string(root().join("docs").join(&page)).unwrap();
        for part in text.split("{{#include ").skip(1) {
            let (what, _) = part.split_once("}}").unwrap();
            let (file, anchor) = what.split_once(':').unwrap_or((what, ""));
            let path = root().join("docs").join(&page).parent().unwrap().join(file);
            let included = fs::read_to_string(&path).unwrap_or_else(|_| panic!("{page}: {file}"));
            if !anchor.is_empty() {
                for end in ["ANCHOR: ", "ANCHOR_END: "] {
                    assert!(included.contains(&format!("{end}{anchor}")), "{page}: {what}");
                }
            }
            count += 1;
        }
    }
    assert!(count > 0);
}
