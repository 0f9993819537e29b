//! Lines of files and functions, without tests.

use std::path::PathBuf;

use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{Block, ImplItem, ImplItemFn, Item, ItemFn, ItemImpl, Signature, TraitItem, Type};

use crate::test_code::{impl_attributes, is_test_only, item_attributes, trait_attributes};
use crate::use_paths::plain;

/// The lines of a file without its tests, and those of its functions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileSize {
    /// Relative to the workspace.
    pub path: PathBuf,
    pub lines: usize,
    pub functions: Vec<FunctionSize>,
}

/// The lines of a function, from `fn` to its last brace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FunctionSize {
    /// With its type, for a method.
    pub name: String,
    pub lines: usize,
}

impl FileSize {
    /// Measures a file of `lines` lines.
    pub fn of(path: PathBuf, lines: usize, syntax: &syn::File) -> FileSize {
        let mut visitor = SizeVisitor { test_lines: 0, owner: None, functions: Vec::new() };
        visitor.visit_file(syntax);
        let lines = lines.saturating_sub(visitor.test_lines);
        FileSize { path, lines, functions: visitor.functions }
    }
}

/// Returns the lines of each file.
pub fn file_lines(files: &[FileSize]) -> Vec<usize> {
    files.iter().map(|file| file.lines).collect()
}

/// Returns the lines of each function.
pub fn function_lines(files: &[FileSize]) -> Vec<usize> {
    files.iter().flat_map(|file| &file.functions).map(|function| function.lines).collect()
}

/// Returns the smallest value that `percent` of all values do not exceed; 0 without values.
pub fn percentile(mut values: Vec<usize>, percent: usize) -> usize {
    values.sort_unstable();
    let rank = (values.len() * percent).div_ceil(100);
    values.get(rank.saturating_sub(1)).copied().unwrap_or_default()
}

struct SizeVisitor {
    test_lines: usize,
    /// The type of the `impl` block, or the trait.
    owner: Option<String>,
    functions: Vec<FunctionSize>,
}

fn lines_of(node: &impl Spanned) -> usize {
    let span = node.span();
    span.end().line - span.start().line + 1
}

impl SizeVisitor {
    fn add_function(&mut self, signature: &Signature, block: &Block) {
        let first = signature.span().start().line;
        let last = block.span().end().line;
        let name = plain(&signature.ident);
        let name = match &self.owner {
            Some(owner) => format!("{owner}::{name}"),
            None => name,
        };
        self.functions.push(FunctionSize { name, lines: last - first + 1 });
    }
}

impl<'ast> Visit<'ast> for SizeVisitor {
    fn visit_item(&mut self, item: &'ast Item) {
        if is_test_only(item_attributes(item)) {
            self.test_lines += lines_of(item);
        } else {
            visit::visit_item(self, item);
        }
    }

    fn visit_item_impl(&mut self, item: &'ast ItemImpl) {
        let before = self.owner.take();
        self.owner = match &*item.self_ty {
            Type::Path(path) => path.path.segments.last().map(|segment| plain(&segment.ident)),
            _ => None,
        };
        visit::visit_item_impl(self, item);
        self.owner = before;
    }

    fn visit_item_trait(&mut self, item: &'ast syn::ItemTrait) {
        let before = self.owner.replace(plain(&item.ident));
        visit::visit_item_trait(self, item);
        self.owner = before;
    }

    fn visit_impl_item(&mut self, item: &'ast ImplItem) {
        if is_test_only(impl_attributes(item)) {
            self.test_lines += lines_of(item);
        } else {
            visit::visit_impl_item(self, item);
        }
    }

    fn visit_trait_item(&mut self, item: &'ast TraitItem) {
        if is_test_only(trait_attributes(item)) {
            self.test_lines += lines_of(item);
            return;
        }
        if let TraitItem::Fn(function) = item
            && let Some(block) = &function.default
        {
            self.add_function(&function.sig, block);
        }
        visit::visit_trait_item(self, item);
    }

    fn visit_item_fn(&mut self, item: &'ast ItemFn) {
        self.add_function(&item.sig, &item.block);
        visit::visit_item_fn(self, item);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast ImplItemFn) {
        self.add_function(&item.sig, &item.block);
        visit::visit_impl_item_fn(self, item);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_code_does_not_count_towards_file_and_function_sizes() {
        let source = "fn a() {
    b();
}

struct S;

impl S {
    /// Says more.
    #[inline]
    fn c(&self) { }
}

#[cfg(test)]
mod tests {
    #[test]
    fn d() {}
}
";
        let syntax = syn::parse_file(source).unwrap();
        let size = FileSize::of(PathBuf::from("top.rs"), source.lines().count(), &syntax);
        assert_eq!(size.lines, 12);
        let functions: Vec<_> = size
            .functions
            .iter()
            .map(|function| (function.name.as_str(), function.lines))
            .collect();
        assert_eq!(functions, [("a", 3), ("S::c", 1)]);
    }

    #[test]
    fn a_percentile_is_one_of_the_values() {
        assert_eq!(percentile((1..=100).collect(), 95), 95);
        assert_eq!(percentile((1..=10).collect(), 50), 5);
        assert_eq!(percentile(vec![7], 95), 7);
        assert_eq!(percentile(Vec::new(), 95), 0);
    }
}
