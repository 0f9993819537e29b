//! Every path that a module names: in imports, types, expressions, attributes and macros.

use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{Attribute, ImplItem, Item, ItemUse, Macro, Meta, Path, TraitItem, Visibility};

use crate::test_code::{impl_attributes, is_test_only, item_attributes, trait_attributes};
use crate::use_paths::{UseLeaf, UseName, plain, use_leaves};

/// A path as it is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathMention {
    pub segments: Vec<String>,
    pub line: usize,
    /// A path of a `use`.
    pub is_import: bool,
    pub is_glob: bool,
}

/// The paths that the items of one module name, without child modules.
#[derive(Debug, Default)]
pub struct ModuleMentions {
    pub mentions: Vec<PathMention>,
    /// Imports inside of functions.
    pub local_uses: Vec<UseLeaf>,
    includes_tests: bool,
    /// Number of items around the visited one.
    depth: usize,
}

impl ModuleMentions {
    /// Collects the paths of `items`.
    pub fn of(items: &[Item], includes_tests: bool) -> ModuleMentions {
        let mut found = ModuleMentions { includes_tests, ..ModuleMentions::default() };
        for item in items {
            found.visit_item(item);
        }
        found
    }

    fn is_left_out(&self, attributes: &[Attribute]) -> bool {
        !self.includes_tests && is_test_only(attributes)
    }

    fn add(&mut self, segments: Vec<String>, line: usize) {
        self.mentions.push(PathMention { segments, line, is_import: false, is_glob: false });
    }

    fn add_tokens(&mut self, tokens: TokenStream) {
        let mut current: Option<(Vec<String>, usize)> = None;
        let mut colons = 0;
        for token in tokens {
            match token {
                TokenTree::Ident(ident) => {
                    let name = plain(&ident);
                    let line = ident.span().start().line;
                    match &mut current {
                        Some((segments, _)) if colons == 2 => segments.push(name),
                        _ => self.start_path(&mut current, name, line),
                    }
                    colons = 0;
                }
                TokenTree::Punct(punct) if punct.as_char() == ':' => colons += 1,
                other => {
                    self.end_path(&mut current);
                    colons = 0;
                    match other {
                        TokenTree::Group(group) => self.add_tokens(group.stream()),
                        TokenTree::Literal(literal) => self.add_literal(&literal),
                        TokenTree::Ident(_) | TokenTree::Punct(_) => {}
                    }
                }
            }
        }
        self.end_path(&mut current);
    }

    fn start_path(
        &mut self,
        current: &mut Option<(Vec<String>, usize)>,
        name: String,
        line: usize,
    ) {
        self.end_path(current);
        *current = Some((vec![name], line));
    }

    fn end_path(&mut self, current: &mut Option<(Vec<String>, usize)>) {
        if let Some((segments, line)) = current.take() {
            self.add(segments, line);
        }
    }

    /// Adds the path of an attribute's string, as in `#[serde(with = "crate::module")]`.
    fn add_literal(&mut self, literal: &proc_macro2::Literal) {
        let text = literal.to_string();
        let Some(text) = text.strip_prefix('"').and_then(|text| text.strip_suffix('"')) else {
            return;
        };
        if !text.contains("::") {
            return;
        }
        if let Ok(path) = syn::parse_str::<Path>(text) {
            let segments = path.segments.iter().map(|segment| plain(&segment.ident)).collect();
            self.add(segments, literal.span().start().line);
        }
    }
}

impl<'ast> Visit<'ast> for ModuleMentions {
    fn visit_item(&mut self, item: &'ast Item) {
        if matches!(item, Item::Mod(_)) || self.is_left_out(item_attributes(item)) {
            return;
        }
        self.depth += 1;
        visit::visit_item(self, item);
        self.depth -= 1;
    }

    fn visit_impl_item(&mut self, item: &'ast ImplItem) {
        if !self.is_left_out(impl_attributes(item)) {
            visit::visit_impl_item(self, item);
        }
    }

    fn visit_trait_item(&mut self, item: &'ast TraitItem) {
        if !self.is_left_out(trait_attributes(item)) {
            visit::visit_trait_item(self, item);
        }
    }

    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        for leaf in use_leaves(item) {
            self.mentions.push(PathMention {
                segments: leaf.path.segments.clone(),
                line: leaf.path.line,
                is_import: true,
                is_glob: leaf.name == UseName::Glob,
            });
            if self.depth > 1 {
                self.local_uses.push(leaf);
            }
        }
    }

    fn visit_path(&mut self, path: &'ast Path) {
        if path.leading_colon.is_none() {
            let segments: Vec<_> = path.segments.iter().map(|part| plain(&part.ident)).collect();
            let line = path.segments.first().map_or(0, |part| part.ident.span().start().line);
            self.add(segments, line);
        }
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, node: &'ast Macro) {
        self.visit_path(&node.path);
        self.add_tokens(node.tokens.clone());
    }

    fn visit_attribute(&mut self, attribute: &'ast Attribute) {
        match &attribute.meta {
            Meta::List(list) => self.add_tokens(list.tokens.clone()),
            Meta::Path(_) | Meta::NameValue(_) => {}
        }
    }

    fn visit_visibility(&mut self, _: &'ast Visibility) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mentions(code: &str) -> Vec<String> {
        let file = syn::parse_file(code).unwrap();
        let found = ModuleMentions::of(&file.items, false).mentions;
        found.iter().map(|mention| mention.segments.join("::")).collect()
    }

    #[test]
    fn groups_globs_and_self_of_an_import_are_expanded() {
        let found = mentions("use crate::a::{self, b::{C, D as E}, f::*};");
        assert_eq!(found, ["crate::a", "crate::a::b::C", "crate::a::b::D", "crate::a::f"]);
    }

    #[test]
    fn paths_inside_macros_and_attributes_are_found() {
        let code = r#"
            #[serde(with = "crate::time::millis")]
            fn f() { println!("{}", crate::a::b(super::c::D { e: [self::g::H] })); }
        "#;
        let found = mentions(code);
        for path in ["crate::time::millis", "crate::a::b", "super::c::D", "self::g::H"] {
            assert!(found.iter().any(|mention| mention == path), "{path} in {found:?}");
        }
    }

    #[test]
    fn bounds_type_arguments_and_trait_paths_are_found() {
        let code = "impl crate::a::T<crate::b::U> for V where V: crate::c::W {}";
        let found = mentions(code);
        for path in ["crate::a::T", "crate::b::U", "crate::c::W"] {
            assert!(found.iter().any(|mention| mention == path), "{path} in {found:?}");
        }
    }

    #[test]
    fn paths_in_test_code_and_visibilities_are_not_mentions() {
        let code = "pub(in crate::a) struct S; #[cfg(test)] fn f() { crate::b::g() }
            impl S { #[cfg(test)] fn h() { crate::c::i() } }";
        assert_eq!(mentions(code), ["S"]);
    }
}
