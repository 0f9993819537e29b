//! Types that share a name with another type of the workspace.

use std::collections::{BTreeMap, BTreeSet};

use syn::Item;

use crate::module_tree::SourceIndex;
use crate::use_paths::plain;

/// The names of all types at the level of modules, with the places that define each.
#[derive(Debug, Default)]
pub struct TypeNames {
    pub places: BTreeMap<String, BTreeSet<String>>,
}

impl TypeNames {
    /// Collects structs, enums, unions, traits and type aliases.
    pub fn of(index: &SourceIndex) -> TypeNames {
        let mut names = TypeNames::default();
        for module in &index.modules {
            for item in &module.items {
                let ident = match item {
                    Item::Enum(item) => &item.ident,
                    Item::Struct(item) => &item.ident,
                    Item::Trait(item) => &item.ident,
                    Item::Type(item) => &item.ident,
                    Item::Union(item) => &item.ident,
                    _ => continue,
                };
                let line = ident.span().start().line;
                let place = format!("{}:{line}", module.file.display());
                names.places.entry(plain(ident)).or_default().insert(place);
            }
        }
        names
    }

    pub fn types(&self) -> usize {
        self.places.values().map(BTreeSet::len).sum()
    }

    /// Returns the names that several types share.
    pub fn shared(&self) -> impl Iterator<Item = (&String, &BTreeSet<String>)> {
        self.places.iter().filter(|(_, places)| places.len() > 1)
    }

    /// Returns the number of types that share a name with another type.
    pub fn types_sharing(&self) -> usize {
        self.shared().map(|(_, places)| places.len()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shared_type_names_are_counted_without_types_in_functions_and_tests() {
        let source = "
struct A;
mod b { enum A {} type C = u8; fn f() { struct C; } }
mod d { trait A {} struct E; }
#[cfg(test)] mod tests { struct E; }";
        let mut index = SourceIndex::default();
        index.load_text("top", source).unwrap();
        let names = TypeNames::of(&index);
        assert_eq!(names.types(), 5);
        assert_eq!(names.types_sharing(), 3);
        assert_eq!(names.shared().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["A"]);
    }
}
