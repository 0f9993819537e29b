//! Two TOML documents, and the parts of the one that replace those of the other.

use toml_edit::{DocumentMut, Item, Table, TableLike, Value};

use crate::error::EvidenceError;

/// Maximum depth of values that are compared.
const VALUE_DEPTH_MAX: usize = 128;

/// The manifest of the base, and that of the work, which changes.
pub(super) struct TomlPair {
    base: DocumentMut,
    work: DocumentMut,
    is_changed: bool,
}

impl TomlPair {
    pub(super) fn parse(base: &str, work: &str) -> Result<TomlPair, EvidenceError> {
        let parsed = |text: &str| {
            text.parse::<DocumentMut>().map_err(|_| EvidenceError::Manifest {
                format: "TOML",
                reason: "it does not parse",
            })
        };
        Ok(TomlPair { base: parsed(base)?, work: parsed(work)?, is_changed: false })
    }

    /// Returns the work's document, or nothing if it has not changed.
    pub(super) fn finish(self) -> Option<String> {
        self.is_changed.then(|| self.work.to_string())
    }

    pub(super) fn base_item(&self, path: &[&str]) -> Option<&Item> {
        item_at(self.base.as_item(), path)
    }

    pub(super) fn work_item(&self, path: &[&str]) -> Option<&Item> {
        item_at(self.work.as_item(), path)
    }

    /// Returns the keys that a table has in the base, and those that it only has in the work.
    pub(super) fn keys(&self, path: &[&str]) -> Vec<String> {
        let mut keys = self.base_keys(path);
        for key in keys_of(self.work_item(path)) {
            if !keys.contains(&key) {
                keys.push(key);
            }
        }
        keys
    }

    pub(super) fn base_keys(&self, path: &[&str]) -> Vec<String> {
        keys_of(self.base_item(path))
    }

    /// Gives the work the base's item, or removes the work's if the base has none.
    pub(super) fn set_to_base(&mut self, path: &[&str]) -> Result<(), EvidenceError> {
        let item = self.base_item(path).cloned();
        self.set(path, item)
    }

    /// Gives the work every entry of a table that the base has. Entries of the work alone stay.
    pub(super) fn restore_entries(&mut self, path: &[&str]) -> Result<(), EvidenceError> {
        for key in self.base_keys(path) {
            let entry: Vec<&str> = path.iter().copied().chain([key.as_str()]).collect();
            self.set_to_base(&entry)?;
        }
        Ok(())
    }

    /// Gives the work the entries of a table that it does not have any more.
    pub(super) fn restore_missing_entries(&mut self, path: &[&str]) -> Result<(), EvidenceError> {
        for key in self.base_keys(path) {
            let entry: Vec<&str> = path.iter().copied().chain([key.as_str()]).collect();
            if self.work_item(&entry).is_none() {
                self.set_to_base(&entry)?;
            }
        }
        Ok(())
    }

    /// Sets or removes an item of the work. Tables on the way to it are made.
    pub(super) fn set(&mut self, path: &[&str], item: Option<Item>) -> Result<(), EvidenceError> {
        if same_items(self.work_item(path), item.as_ref(), 0)? {
            return Ok(());
        }
        let Some((last, parents)) = path.split_last() else { return Ok(()) };
        self.is_changed = true;
        let Some(item) = item else {
            if let Some(table) = table_at(self.work.as_item_mut(), parents) {
                table.remove(last);
            }
            return Ok(());
        };
        let mut table: &mut dyn TableLike = self.work.as_table_mut();
        for parent in parents {
            let made = table.entry(parent).or_insert_with(|| {
                let mut parent = Table::new();
                parent.set_implicit(true);
                Item::Table(parent)
            });
            table = made.as_table_like_mut().ok_or(EvidenceError::Manifest {
                format: "TOML",
                reason: "a table of the base is a value in the work",
            })?;
        }
        table.insert(last, placed(item));
        Ok(())
    }
}

/// Returns an item without the positions that its tables had in their document.
fn placed(mut item: Item) -> Item {
    let mut open = vec![&mut item];
    while let Some(item) = open.pop() {
        let tables: Vec<&mut Table> = match item {
            Item::Table(table) => vec![table],
            Item::ArrayOfTables(tables) => tables.iter_mut().collect(),
            Item::None | Item::Value(_) => Vec::new(),
        };
        for table in tables {
            table.set_position(None);
            open.extend(table.iter_mut().map(|(_, item)| item));
        }
    }
    item
}

pub(super) fn item_at<'d>(item: &'d Item, path: &[&str]) -> Option<&'d Item> {
    path.iter().try_fold(item, |item, key| item.as_table_like()?.get(key))
}

fn table_at<'d>(item: &'d mut Item, path: &[&str]) -> Option<&'d mut dyn TableLike> {
    let mut item = item;
    for key in path {
        item = item.as_table_like_mut()?.get_mut(key)?;
    }
    item.as_table_like_mut()
}

fn keys_of(item: Option<&Item>) -> Vec<String> {
    let table = item.and_then(Item::as_table_like);
    table.map_or_else(Vec::new, |table| table.iter().map(|(key, _)| key.to_owned()).collect())
}

/// Whether two items have the same values. Their format does not count.
fn same_items(
    left: Option<&Item>,
    right: Option<&Item>,
    depth: usize,
) -> Result<bool, EvidenceError> {
    if depth > VALUE_DEPTH_MAX {
        return Err(EvidenceError::TooDeep { part: "the manifest", limit: VALUE_DEPTH_MAX });
    }
    let is_there = |item: &&Item| !item.is_none();
    let (left, right) = match (left.filter(is_there), right.filter(is_there)) {
        (Some(left), Some(right)) => (left, right),
        (left, right) => return Ok(left.is_none() && right.is_none()),
    };
    if let (Some(left), Some(right)) = (left.as_table_like(), right.as_table_like()) {
        if left.len() != right.len() {
            return Ok(false);
        }
        for (key, value) in left.iter() {
            if !same_items(Some(value), right.get(key), depth + 1)? {
                return Ok(false);
            }
        }
        return Ok(true);
    }
    let (left, right) = match (elements(left), elements(right)) {
        (Some(left), Some(right)) => (left, right),
        (None, None) => return Ok(scalar(left) == scalar(right)),
        _ => return Ok(false),
    };
    if left.len() != right.len() {
        return Ok(false);
    }
    for (left, right) in left.iter().zip(&right) {
        if !same_items(Some(left), Some(right), depth + 1)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Returns the elements of an array, also of one that is written as tables.
fn elements(item: &Item) -> Option<Vec<Item>> {
    match item {
        Item::ArrayOfTables(tables) => Some(tables.iter().cloned().map(Item::Table).collect()),
        Item::Value(Value::Array(array)) => Some(array.iter().cloned().map(Item::Value).collect()),
        _ => None,
    }
}

/// Returns a value as text without its format.
fn scalar(item: &Item) -> Option<String> {
    match item.as_value()? {
        Value::String(text) => Some(format!("\"{}", text.value())),
        Value::Integer(number) => Some(number.value().to_string()),
        Value::Float(number) => Some(format!("{:?}", number.value())),
        Value::Boolean(flag) => Some(flag.value().to_string()),
        Value::Datetime(time) => Some(time.value().to_string()),
        Value::Array(_) | Value::InlineTable(_) => None,
    }
}
