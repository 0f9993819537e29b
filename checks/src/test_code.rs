//! The items that only tests compile.

use std::path::Path;

use syn::punctuated::Punctuated;
use syn::{Attribute, ImplItem, Item, Meta, Token, TraitItem};

/// Returns whether an item with these attributes is compiled for tests alone.
pub fn is_test_only(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("test")
            || (attribute.path().is_ident("cfg")
                && attribute.parse_args::<Meta>().is_ok_and(|predicate| implies_test(&predicate)))
    })
}

/// Returns whether a `cfg` predicate holds only in tests.
fn implies_test(predicate: &Meta) -> bool {
    let Meta::List(list) = predicate else { return predicate.path().is_ident("test") };
    let parse = Punctuated::<Meta, Token![,]>::parse_terminated;
    let Ok(parts) = list.parse_args_with(parse) else { return false };
    if list.path.is_ident("all") {
        parts.iter().any(implies_test)
    } else if list.path.is_ident("any") {
        !parts.is_empty() && parts.iter().all(implies_test)
    } else {
        false
    }
}

/// Returns whether a file of a library or a program holds tests, by its name.
pub fn is_test_file(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name == "tests.rs")
        || path.components().any(|part| part.as_os_str() == "tests")
}

/// Returns the attributes of an item.
pub fn item_attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::ExternCrate(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::ForeignMod(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::TraitAlias(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Union(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

/// Returns the attributes of an item in an `impl` block.
pub fn impl_attributes(item: &ImplItem) -> &[Attribute] {
    match item {
        ImplItem::Const(item) => &item.attrs,
        ImplItem::Fn(item) => &item.attrs,
        ImplItem::Type(item) => &item.attrs,
        ImplItem::Macro(item) => &item.attrs,
        _ => &[],
    }
}

/// Returns the attributes of an item in a trait.
pub fn trait_attributes(item: &TraitItem) -> &[Attribute] {
    match item {
        TraitItem::Const(item) => &item.attrs,
        TraitItem::Fn(item) => &item.attrs,
        TraitItem::Type(item) => &item.attrs,
        TraitItem::Macro(item) => &item.attrs,
        _ => &[],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_predicate_that_also_holds_outside_of_tests_is_not_test_only() {
        let test_only = |code: &str| {
            let item: Item = syn::parse_str(code).unwrap();
            is_test_only(item_attributes(&item))
        };
        assert!(test_only("#[cfg(test)] mod a;"));
        assert!(test_only("#[cfg(all(test, target_os = \"linux\"))] mod a;"));
        assert!(test_only("#[cfg(any(test, all(test, unix)))] fn a() {}"));
        assert!(test_only("#[test] fn a() {}"));
        assert!(!test_only("#[cfg(any(not(target_os = \"linux\"), test))] mod a;"));
        assert!(!test_only("#[cfg(not(test))] mod a;"));
        assert!(!test_only("#[cfg(unix)] mod a;"));
    }
}
