//! The module and the item behind a path, through imports and re-exports.

use std::collections::HashSet;

use crate::module_tree::{ModuleId, NameBinding, SourceIndex};
use crate::use_paths::UsePath;

/// The meaning of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathTarget {
    /// The module that the path names, or that defines the item.
    pub module: ModuleId,
    /// The item; none if the path names the module itself.
    pub item: Option<String>,
    /// The modules whose imports or re-exports the path passes through.
    pub via: Vec<ModuleId>,
}

impl PathTarget {
    fn module(module: ModuleId) -> PathTarget {
        PathTarget { module, item: None, via: Vec::new() }
    }

    fn item(module: ModuleId, name: &str) -> PathTarget {
        PathTarget { module, item: Some(name.to_owned()), via: Vec::new() }
    }
}

/// Resolves paths as the compiler does, without visibility and without expanding macros.
#[derive(Debug)]
pub struct PathResolver<'a> {
    index: &'a SourceIndex,
}

/// The names that are being looked up with the rest of their path, so that imports in a circle end.
type Pending = HashSet<(ModuleId, Vec<String>)>;

/// Maximum length of a chain of imports.
const IMPORTS_MAX: usize = 64;

impl<'a> PathResolver<'a> {
    pub fn new(index: &'a SourceIndex) -> PathResolver<'a> {
        PathResolver { index }
    }

    /// Returns the targets of a path in `module`; none if it leads out of the loaded targets.
    pub fn resolve(&self, module: ModuleId, segments: &[String]) -> Vec<PathTarget> {
        self.resolve_pending(module, segments, &mut Pending::new())
    }

    /// Returns whether `name` is bound in the module itself, not by a glob.
    pub fn is_explicit(&self, module: ModuleId, name: &str) -> bool {
        let module = self.index.module(module);
        module.names.contains_key(name) || module.local_imports.contains_key(name)
    }

    fn resolve_pending(
        &self,
        module: ModuleId,
        segments: &[String],
        pending: &mut Pending,
    ) -> Vec<PathTarget> {
        let Some((first, rest)) = segments.split_first() else { return Vec::new() };
        match first.as_str() {
            "crate" => {
                let tree = self.index.module(module).tree;
                self.walk(self.index.tree(tree).root, rest, pending)
            }
            "self" => self.walk(module, rest, pending),
            "super" => self.resolve_super(module, rest, pending),
            _ => {
                let found = self.walk_bindings(module, first, rest, pending);
                if found.is_empty() { self.resolve_crate(first, rest, pending) } else { found }
            }
        }
    }

    fn resolve_super(
        &self,
        module: ModuleId,
        rest: &[String],
        pending: &mut Pending,
    ) -> Vec<PathTarget> {
        let Some(parent) = self.index.module(module).parent else { return Vec::new() };
        match rest.split_first() {
            Some((next, rest)) if next == "super" => self.resolve_super(parent, rest, pending),
            _ => self.walk(parent, rest, pending),
        }
    }

    fn resolve_crate(&self, name: &str, rest: &[String], pending: &mut Pending) -> Vec<PathTarget> {
        let named = self.index.trees.iter().find(|tree| tree.crate_name.as_deref() == Some(name));
        named.map(|tree| self.walk(tree.root, rest, pending)).unwrap_or_default()
    }

    /// Follows `segments` down from `module`. An unknown name counts as an item of the module.
    fn walk(
        &self,
        module: ModuleId,
        segments: &[String],
        pending: &mut Pending,
    ) -> Vec<PathTarget> {
        let Some((first, rest)) = segments.split_first() else {
            return vec![PathTarget::module(module)];
        };
        if pending.contains(&(module, segments.to_vec())) {
            return Vec::new();
        }
        let found = self.walk_bindings(module, first, rest, pending);
        if found.is_empty() { vec![PathTarget::item(module, first)] } else { found }
    }

    fn walk_bindings(
        &self,
        module: ModuleId,
        name: &str,
        rest: &[String],
        pending: &mut Pending,
    ) -> Vec<PathTarget> {
        let path = std::iter::once(name).chain(rest.iter().map(String::as_str));
        let key = (module, path.map(str::to_owned).collect());
        if pending.len() >= IMPORTS_MAX || !pending.insert(key.clone()) {
            return Vec::new();
        }
        let source = self.index.module(module);
        let explicit = source.names.get(name).or_else(|| source.local_imports.get(name));
        let found = match explicit {
            Some(bindings) => {
                let each = |binding| self.follow(module, name, binding, rest, pending);
                bindings.iter().flat_map(each).collect()
            }
            None => self.walk_globs(module, name, rest, pending),
        };
        pending.remove(&key);
        found
    }

    fn follow(
        &self,
        module: ModuleId,
        name: &str,
        binding: &NameBinding,
        rest: &[String],
        pending: &mut Pending,
    ) -> Vec<PathTarget> {
        match binding {
            NameBinding::Own => vec![PathTarget::item(module, name)],
            NameBinding::Child(child) => self.walk(*child, rest, pending),
            NameBinding::Import(import) => {
                let path: Vec<String> = import.segments.iter().chain(rest).cloned().collect();
                let mut targets = match path.split_first() {
                    // `use name::…` binds `name` itself: another meaning of it is the first segment's.
                    Some((first, rest)) if first == name => {
                        self.resolve_same_name(module, first, rest, pending)
                    }
                    _ => self.resolve_pending(module, &path, pending),
                };
                if targets.is_empty() {
                    targets.push(PathTarget::item(module, name));
                }
                for target in &mut targets {
                    target.via.push(module);
                }
                targets
            }
        }
    }

    fn resolve_same_name(
        &self,
        module: ModuleId,
        name: &str,
        rest: &[String],
        pending: &mut Pending,
    ) -> Vec<PathTarget> {
        let bindings = self.index.module(module).names.get(name).into_iter().flatten();
        let child = bindings.into_iter().find_map(|binding| match binding {
            NameBinding::Child(child) => Some(*child),
            _ => None,
        });
        match child {
            Some(child) => self.walk(child, rest, pending),
            None => self.resolve_crate(name, rest, pending),
        }
    }

    fn walk_globs(
        &self,
        module: ModuleId,
        name: &str,
        rest: &[String],
        pending: &mut Pending,
    ) -> Vec<PathTarget> {
        let globs: &[UsePath] = &self.index.module(module).globs;
        let mut found = Vec::new();
        for glob in globs {
            for target in self.resolve_pending(module, &glob.segments, pending) {
                if target.item.is_none() {
                    found.extend(self.walk_bindings(target.module, name, rest, pending));
                }
            }
        }
        for target in &mut found {
            target.via.push(module);
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Resolves `path` in the module `from` of a crate with this source.
    fn resolve(source: &str, from: &str, path: &str) -> Vec<String> {
        let mut index = SourceIndex::default();
        index.load_text("top", source).unwrap();
        let id = |wanted: &str| {
            let is_wanted = |id: &ModuleId| index.module(*id).path.join("::") == wanted;
            (0..index.modules.len()).find(is_wanted).unwrap()
        };
        let segments: Vec<String> = path.split("::").map(str::to_owned).collect();
        let targets = PathResolver::new(&index).resolve(id(from), &segments);
        let name = |target: &PathTarget| {
            let module = index.module(target.module).path.join("::");
            match &target.item {
                Some(item) => format!("{module}/{item}"),
                None => module,
            }
        };
        targets.iter().map(name).collect()
    }

    #[test]
    fn a_re_export_leads_to_the_module_that_defines_the_item() {
        let source = "mod a { pub use self::b::X; mod b { pub struct X; } } mod c {}";
        assert_eq!(resolve(source, "c", "crate::a::X"), ["a::b/X"]);
        assert_eq!(resolve(source, "c", "super::a::X::new"), ["a::b/X"]);
    }

    #[test]
    fn a_glob_re_export_is_followed() {
        let source =
            "mod a { pub use self::b::*; mod b { pub fn x() {} } } mod c { use crate::a::*; }";
        assert_eq!(resolve(source, "c", "x"), ["a::b/x"]);
    }

    #[test]
    fn a_renamed_import_of_a_module_is_followed() {
        let source = "mod a { pub mod b { pub fn x() {} } } mod c { use crate::a as other; }";
        assert_eq!(resolve(source, "c", "other::b::x"), ["a::b/x"]);
    }

    #[test]
    fn paths_into_other_crates_are_not_resolved() {
        let source = "mod a { use serde::Serialize; use log; }";
        assert_eq!(resolve(source, "a", "std::fs::read"), [""; 0]);
        assert_eq!(resolve(source, "a", "log::info"), ["a/log"]);
    }

    #[test]
    fn circular_imports_are_resolved_without_a_loop() {
        let source =
            "mod a { pub use crate::b::*; } mod b { pub use crate::a::*; pub use crate::a::X; }";
        assert_eq!(resolve(source, "a", "crate::a::X"), ["b/X"]);
    }

    #[test]
    fn an_import_may_have_the_name_of_its_module() {
        let source =
            "mod a { pub use a::a; pub mod a { pub fn a() {} } } mod c { use crate::a::a::a; }";
        assert!(resolve(source, "c", "crate::a::a").contains(&"a::a/a".to_owned()));
        let again = "mod a { pub use crate::a::b::X; mod b { pub struct X; } } mod c {}";
        assert_eq!(resolve(again, "c", "crate::a::X"), ["a::b/X"]);
    }

    #[test]
    fn super_and_self_are_resolved_relative_to_their_module() {
        let source = "mod a { mod b { mod c {} } mod d { pub fn x() {} } }";
        assert_eq!(resolve(source, "a::b::c", "super::super::d::x"), ["a::d/x"]);
        assert_eq!(resolve(source, "a", "self::d"), ["a::d"]);
    }

    #[test]
    fn an_import_inside_of_a_function_binds_its_name() {
        let source =
            "mod a { pub mod b { pub fn x() {} } } mod c { fn f() { use crate::a::b; b::x() } }";
        assert_eq!(resolve(source, "c", "b::x"), ["a::b/x"]);
    }
}
