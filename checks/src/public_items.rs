//! Public items of libraries that no other crate and no test names.
//!
//! An item also counts as named if the interface of a named item contains it: a parameter, a result,
//! a public field, a variant, a bound. Such an item has to be public.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fmt;
use std::path::PathBuf;

use syn::visit::{self, Visit};
use syn::{Attribute, Block, Field, ImplItem, Item, ItemImpl, Path, Type, Visibility};

use crate::module_tree::{ModuleId, NameBinding, SourceIndex, TreeId, own_name};
use crate::resolver::{PathResolver, PathTarget};
use crate::use_paths::plain;

/// An item by its module and its name.
type ItemKey = (ModuleId, String);

/// A public item that nothing outside of its crate names.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct UnnamedItem {
    pub crate_label: String,
    pub path: String,
    pub file: PathBuf,
}

impl fmt::Display for UnnamedItem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}::{} in {}", self.crate_label, self.path, self.file.display())
    }
}

/// The public items of one library.
#[derive(Debug)]
pub struct PublicItems {
    pub crate_label: String,
    pub total: usize,
    pub unnamed: Vec<UnnamedItem>,
}

/// Returns the public items of every product library in the index.
pub fn public_items(index: &SourceIndex) -> Vec<PublicItems> {
    let resolver = PathResolver::new(index);
    let named = named_from_outside(index, &resolver);
    let libraries = (0..index.trees.len())
        .filter(|tree| index.tree(*tree).is_product && index.tree(*tree).crate_name.is_some());
    libraries.map(|tree| items_of(index, &resolver, tree, &named)).collect()
}

fn items_of(
    index: &SourceIndex,
    resolver: &PathResolver<'_>,
    tree: TreeId,
    named: &HashSet<ItemKey>,
) -> PublicItems {
    let reachable = reachable_items(index, resolver, tree);
    let interfaces = Interfaces::of(index, resolver, tree);
    let mut needed: BTreeSet<ItemKey> =
        reachable.iter().filter(|item| named.contains(*item)).cloned().collect();
    let mut open: Vec<ItemKey> = needed.iter().cloned().collect();
    while let Some(item) = open.pop() {
        for mentioned in interfaces.of_item(&item) {
            if needed.insert(mentioned.clone()) {
                open.push(mentioned.clone());
            }
        }
    }
    let crate_label = index.tree(tree).label.clone();
    let describe = |(module, name): &ItemKey| {
        let module = index.module(*module);
        let path: Vec<&str> = module.path.iter().chain([name]).map(String::as_str).collect();
        let file = module.file.clone();
        UnnamedItem { crate_label: crate_label.clone(), path: path.join("::"), file }
    };
    let mut unnamed: Vec<_> =
        reachable.iter().filter(|item| !needed.contains(*item)).map(describe).collect();
    unnamed.sort();
    PublicItems { total: reachable.len(), unnamed, crate_label }
}

/// Returns the items that crates other than their own name.
fn named_from_outside(index: &SourceIndex, resolver: &PathResolver<'_>) -> HashSet<ItemKey> {
    let mut named = HashSet::new();
    for (id, module) in index.modules.iter().enumerate() {
        for mention in &module.mentions {
            for PathTarget { module: target, item, .. } in resolver.resolve(id, &mention.segments) {
                if let Some(item) = item
                    && index.module(target).tree != module.tree
                {
                    named.insert((target, item));
                }
            }
        }
    }
    named
}

/// Returns the items that other crates can name.
fn reachable_items(
    index: &SourceIndex,
    resolver: &PathResolver<'_>,
    tree: TreeId,
) -> BTreeSet<ItemKey> {
    let mut items = BTreeSet::new();
    let mut seen = HashSet::new();
    let mut open = vec![index.tree(tree).root];
    while let Some(id) = open.pop() {
        if !seen.insert(id) {
            continue;
        }
        let module = index.module(id);
        let own = module.items.iter().filter(|item| is_public(item)).filter_map(own_name);
        items.extend(own.map(|name| (id, name)));
        let bindings = module.names.values().flatten();
        let children = bindings.clone().filter_map(|binding| match binding {
            NameBinding::Child(child) if index.module(*child).is_public => Some(*child),
            _ => None,
        });
        open.extend(children);
        let imports = bindings.filter_map(|binding| match binding {
            NameBinding::Import(import) if import.is_public => Some(import),
            _ => None,
        });
        let globs = module.globs.iter().filter(|glob| glob.is_public);
        for import in imports.chain(globs) {
            for target in resolver.resolve(id, &import.segments) {
                if index.module(target.module).tree != tree {
                    continue;
                }
                match target.item {
                    Some(item) => drop(items.insert((target.module, item))),
                    None => open.push(target.module),
                }
            }
        }
    }
    items
}

fn is_public(item: &Item) -> bool {
    let visibility = match item {
        Item::Const(item) => &item.vis,
        Item::Enum(item) => &item.vis,
        Item::Fn(item) => &item.vis,
        Item::Static(item) => &item.vis,
        Item::Struct(item) => &item.vis,
        Item::Trait(item) => &item.vis,
        Item::Type(item) => &item.vis,
        Item::Union(item) => &item.vis,
        _ => return false,
    };
    matches!(visibility, Visibility::Public(_))
}

/// The items in the interface of each item.
#[derive(Default)]
struct Interfaces {
    mentioned: HashMap<ItemKey, Vec<ItemKey>>,
}

impl Interfaces {
    fn of(index: &SourceIndex, resolver: &PathResolver<'_>, tree: TreeId) -> Interfaces {
        let mut found: BTreeMap<ItemKey, BTreeSet<ItemKey>> = BTreeMap::new();
        for id in index.modules_of(tree) {
            let targets = |segments: &[String]| {
                let targets = resolver.resolve(id, segments).into_iter();
                targets.filter_map(|target| Some((target.module, target.item?))).collect::<Vec<_>>()
            };
            for item in &index.module(id).items {
                let mut visitor = InterfaceVisitor::default();
                let owners = match item {
                    Item::Impl(item) => {
                        visitor.visit_interface(item);
                        self_type(item).map(|path| targets(&path)).unwrap_or_default()
                    }
                    item => {
                        visitor.visit_item(item);
                        own_name(item).map(|name| (id, name)).into_iter().collect()
                    }
                };
                let mentioned: Vec<_> =
                    visitor.paths.iter().flat_map(|path| targets(path)).collect();
                for owner in owners {
                    found.entry(owner).or_default().extend(mentioned.iter().cloned());
                }
            }
        }
        let mentioned =
            found.into_iter().map(|(item, all)| (item, all.into_iter().collect())).collect();
        Interfaces { mentioned }
    }

    fn of_item(&self, item: &ItemKey) -> &[ItemKey] {
        self.mentioned.get(item).map(Vec::as_slice).unwrap_or_default()
    }
}

/// Returns the path of the type that an `impl` block is for.
fn self_type(item: &ItemImpl) -> Option<Vec<String>> {
    match &*item.self_ty {
        Type::Path(path) => Some(path_segments(&path.path)),
        _ => None,
    }
}

fn path_segments(path: &Path) -> Vec<String> {
    path.segments.iter().map(|segment| plain(&segment.ident)).collect()
}

/// Collects the paths of an interface: no bodies, no private fields, no private methods.
#[derive(Default)]
struct InterfaceVisitor {
    paths: Vec<Vec<String>>,
}

impl InterfaceVisitor {
    fn visit_interface(&mut self, item: &ItemImpl) {
        let is_trait = item.trait_.is_some();
        self.visit_generics(&item.generics);
        self.visit_type(&item.self_ty);
        if let Some((path, _)) = item.trait_.as_ref().map(|(_, path, of)| (path, of)) {
            self.visit_path(path);
        }
        for item in &item.items {
            let visibility = match item {
                ImplItem::Const(item) => &item.vis,
                ImplItem::Fn(item) => &item.vis,
                ImplItem::Type(item) => &item.vis,
                _ => continue,
            };
            if is_trait || matches!(visibility, Visibility::Public(_)) {
                self.visit_impl_item(item);
            }
        }
    }
}

impl<'ast> Visit<'ast> for InterfaceVisitor {
    fn visit_block(&mut self, _: &'ast Block) {}

    fn visit_expr(&mut self, _: &'ast syn::Expr) {}

    fn visit_attribute(&mut self, _: &'ast Attribute) {}

    fn visit_visibility(&mut self, _: &'ast Visibility) {}

    fn visit_item_struct(&mut self, item: &'ast syn::ItemStruct) {
        self.visit_generics(&item.generics);
        for field in &item.fields {
            if matches!(field.vis, Visibility::Public(_)) {
                self.visit_type(&field.ty);
            }
        }
    }

    fn visit_field(&mut self, field: &'ast Field) {
        self.visit_type(&field.ty);
    }

    fn visit_path(&mut self, path: &'ast Path) {
        self.paths.push(path_segments(path));
        visit::visit_path(self, path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unnamed(library: &str, user: &str) -> Vec<String> {
        let mut index = SourceIndex::default();
        let tree = index.load_text("library", library).unwrap();
        index.load_text("user", user).unwrap();
        let all = public_items(&index);
        let found = all.into_iter().nth(tree).unwrap();
        found.unnamed.into_iter().map(|item| item.path).collect()
    }

    #[test]
    fn an_unused_public_item_is_found() {
        let library = "pub mod a { pub fn used() {} pub fn unused() {} fn private() {} }
            mod hidden { pub fn unreachable() {} }";
        assert_eq!(unnamed(library, "use library::a::used;"), ["a::unused"]);
    }

    #[test]
    fn items_are_named_through_re_exports_modules_and_macros() {
        let library = "mod a { pub struct X; pub struct Y; pub struct Z; pub struct W; }
            pub use a::{X, Y}; pub mod b { pub use crate::a::*; }";
        let user = "use library::b; fn f() { vec![library::X, b::Y]; g::<b::Z>() }";
        assert_eq!(unnamed(library, user), ["a::W"]);
    }

    #[test]
    fn types_in_the_interface_of_a_named_item_count_as_named() {
        let library = "
            pub struct Result_; pub struct Field_; pub struct Hidden; pub struct Private; pub struct Body;
            pub struct S { pub a: Vec<Field_>, b: Hidden }
            impl S { pub fn f(&self) -> Option<Result_> { Body; } fn g(&self) -> Private {} }
            pub fn make() -> S {}";
        let found = unnamed(library, "fn f() { library::make() }");
        assert_eq!(found, ["Body", "Hidden", "Private"]);
    }
}
