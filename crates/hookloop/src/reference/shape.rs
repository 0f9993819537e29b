//! A JSON Schema as rows of a table.

use serde_json::Value;

use super::list;

/// How deep objects in objects are spelled out.
const DEPTH_MAX: usize = 3;

/// A schema with the definitions that it refers to.
#[derive(Clone, Copy)]
pub(super) struct SchemaShape<'a> {
    root: &'a Value,
    /// Whether an object has its own section and is linked, or is described in place.
    links: bool,
}

/// One field of an object.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ShapeRow {
    pub(super) name: String,
    pub(super) kind: String,
    pub(super) is_required: bool,
    pub(super) meaning: String,
}

impl<'a> SchemaShape<'a> {
    pub(super) fn linked(root: &'a Value) -> SchemaShape<'a> {
        SchemaShape { root, links: true }
    }

    pub(super) fn spelled_out(root: &'a Value) -> SchemaShape<'a> {
        SchemaShape { root, links: false }
    }

    /// The definition that a reference leads to, and its name.
    fn definition(self, node: &Value) -> Option<(&'a str, &'a Value)> {
        let name = node.get("$ref")?.as_str()?.strip_prefix("#/$defs/")?;
        let (name, found) = self.root.get("$defs")?.as_object()?.get_key_value(name)?;
        Some((name.as_str(), found))
    }

    /// The fields of an object, and of the objects in it.
    pub(super) fn rows(self, node: &Value) -> Vec<ShapeRow> {
        let mut rows = Vec::new();
        self.add_rows(node, "", &mut rows, 0);
        rows
    }

    fn add_rows(self, node: &Value, prefix: &str, rows: &mut Vec<ShapeRow>, depth: usize) {
        let node = self.definition(node).map_or(node, |(_, found)| found);
        for (name, field) in properties(node) {
            self.add_row(&[field], format!("{prefix}{name}"), is_required(node, name), rows, depth);
        }
        let variants = variants(node).into_iter();
        let variants: Vec<&Value> =
            variants.map(|part| self.definition(part).map_or(part, |(_, found)| found)).collect();
        let mut told: Vec<&str> = Vec::new();
        for (name, _) in variants.iter().flat_map(|part| properties(part)) {
            if told.contains(&name) {
                continue;
            }
            told.push(name);
            let fields: Vec<&Value> =
                variants.iter().filter_map(|part| part["properties"].get(name)).collect();
            let is_required = variants.iter().all(|part| is_required(part, name));
            self.add_row(&fields, format!("{prefix}{name}"), is_required, rows, depth);
        }
    }

    /// A field, as the variants have it that do.
    fn add_row(
        self,
        fields: &[&Value],
        name: String,
        is_required: bool,
        rows: &mut Vec<ShapeRow>,
        depth: usize,
    ) {
        let kind = alternatives(fields.iter().map(|field| self.kind(field)));
        let meaning = fields.iter().find_map(|field| field["description"].as_str());
        let meaning = meaning.unwrap_or_default().to_owned();
        rows.push(ShapeRow { name: name.clone(), kind, is_required, meaning });
        // Differences between variants are left out.
        let inner = match fields {
            [only] if !self.links && depth < DEPTH_MAX => self.inner_object(only),
            _ => None,
        };
        if let Some((inner, suffix)) = inner {
            self.add_rows(inner, &format!("{name}{suffix}."), rows, depth + 1);
        }
    }

    /// The object that a field is, or has a list of.
    fn inner_object<'n>(self, field: &'n Value) -> Option<(&'n Value, &'static str)>
    where
        'a: 'n,
    {
        if let Some(items) = field.get("items") {
            return Some((self.inner_object(items)?.0, "[]"));
        }
        let field = without_null(field);
        let found = self.definition(field).map_or(field, |(_, found)| found);
        let is_object = !properties(found).is_empty()
            || variants(found).iter().any(|variant| is_tagged(variant));
        is_object.then_some((found, ""))
    }

    /// Returns the type of a value in words.
    pub(super) fn kind(self, node: &Value) -> String {
        let node = without_null(node);
        if let Some((name, found)) = self.definition(node) {
            return self.kind_of_definition(name, found);
        }
        if let Some(value) = node.get("const") {
            return code(value);
        }
        if let Some(values) = node.get("enum").and_then(Value::as_array) {
            return alternatives(values.iter().filter(|value| !value.is_null()).map(code));
        }
        let variants = variants(node);
        if !variants.is_empty() {
            return alternatives(variants.iter().map(|variant| self.kind_of_variant(variant)));
        }
        self.kind_of_type(node)
    }

    fn kind_of_type(self, node: &Value) -> String {
        let types: Vec<&str> = match &node["type"] {
            Value::String(one) => vec![one.as_str()],
            Value::Array(many) => many.iter().filter_map(Value::as_str).collect(),
            _ => Vec::new(),
        };
        match types.into_iter().find(|name| *name != "null") {
            Some("string") if node["format"] == "date-time" => "time".to_owned(),
            Some("string") => "text".to_owned(),
            Some("boolean") => "`true` or `false`".to_owned(),
            Some("integer") => "whole number".to_owned(),
            Some("array") => format!("list of {}", self.kind(&node["items"])),
            Some("object") => self.kind_of_object(node),
            Some(other) => other.to_owned(),
            None => "anything".to_owned(),
        }
    }

    fn kind_of_object(self, node: &Value) -> String {
        let all = properties(node);
        let is_map = node.get("additionalProperties").is_some_and(Value::is_object);
        if is_map && all.is_empty() {
            return format!("by name: {}", self.kind(&node["additionalProperties"]));
        }
        let kinds: Vec<String> = all.iter().map(|(_, field)| self.kind(field)).collect();
        match kinds.split_first() {
            // Many keys of one kind, as hook points are.
            Some((first, rest)) if rest.len() > 4 && rest.iter().all(|kind| kind == first) => {
                format!("by [point](points.md): {first}")
            }
            _ => "object".to_owned(),
        }
    }

    fn kind_of_definition(self, name: &str, found: &Value) -> String {
        let is_object = !properties(found).is_empty();
        match (is_object, self.links) {
            (true, true) => format!("[{}](#{})", title(name), anchor(name)),
            (true, false) => "object".to_owned(),
            (false, _) if found["type"] == "string" && found.get("enum").is_none() => title(name),
            (false, _) => self.kind(found),
        }
    }

    /// One of several things that a value may be.
    fn kind_of_variant(self, node: &Value) -> String {
        match properties(node).as_slice() {
            [(name, _)] if !is_tagged(node) => format!("`{{{name}: …}}`"),
            fields if is_tagged(node) => fields
                .iter()
                .find_map(|(_, field)| field.get("const"))
                .map_or_else(String::new, code),
            _ => self.kind(node),
        }
    }

    /// The definitions that have sections of their own.
    pub(super) fn sections(self) -> Vec<(&'a str, &'a Value)> {
        let all = self.root.get("$defs").and_then(Value::as_object);
        let all = all.into_iter().flatten().map(|(name, found)| (name.as_str(), found));
        all.filter(|(_, found)| !properties(found).is_empty()).collect()
    }
}

/// `HookEntry` as people call it: `hook`.
pub(super) fn title(name: &str) -> String {
    let name = name.strip_suffix("Entry").unwrap_or(name);
    let mut text = String::new();
    for letter in name.chars() {
        if letter.is_uppercase() && !text.is_empty() {
            text.push(' ');
        }
        text.extend(letter.to_lowercase());
    }
    text
}

fn anchor(name: &str) -> String {
    title(name).replace(' ', "-")
}

fn properties(node: &Value) -> Vec<(&str, &Value)> {
    let found = node.get("properties").and_then(Value::as_object);
    found.into_iter().flatten().map(|(name, field)| (name.as_str(), field)).collect()
}

fn is_required(node: &Value, name: &str) -> bool {
    let all = node.get("required").and_then(Value::as_array);
    all.is_some_and(|all| all.iter().any(|known| known == name))
}

/// Whether a field distinguishes the variant from others.
fn is_tagged(node: &Value) -> bool {
    properties(node).iter().any(|(_, field)| field.get("const").is_some())
}

/// Returns the allowed values.
fn variants(node: &Value) -> Vec<&Value> {
    let lists = ["oneOf", "anyOf"].into_iter().filter_map(|key| node.get(key)?.as_array());
    lists.flatten().filter(|variant| variant["type"] != "null").collect()
}

/// The only thing that it may be beside nothing at all.
fn without_null(node: &Value) -> &Value {
    match variants(node).as_slice() {
        [only] => only,
        _ => node,
    }
}

/// Kinds in one phrase, each once.
fn alternatives(all: impl Iterator<Item = String>) -> String {
    let mut kinds: Vec<String> = Vec::new();
    for kind in all {
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    let is_code = |kind: &String| kind.starts_with('`');
    kinds.join(if kinds.iter().all(is_code) { ", " } else { " or " })
}

fn code(value: &Value) -> String {
    match value {
        Value::String(text) => list([text.as_str()]),
        other => list([other.to_string().as_str()]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn row(name: &str, kind: &str, is_required: bool, meaning: &str) -> ShapeRow {
        let [name, kind, meaning] = [name, kind, meaning].map(str::to_owned);
        ShapeRow { name, kind, is_required, meaning }
    }

    #[test]
    fn nested_fields_are_listed_or_linked() {
        let root = json!({
            "type": "object",
            "properties": {
                "who": {"$ref": "#/$defs/UserEntry", "description": "Who."},
                "list": {"type": ["array", "null"], "items": {"type": "string"}},
            },
            "required": ["who"],
            "$defs": {"UserEntry": {"type": "object", "properties": {"age": {"type": "integer"}}}},
        });
        let spelled = SchemaShape::spelled_out(&root).rows(&root);
        let expected = [
            row("who", "object", true, "Who."),
            row("who.age", "whole number", false, ""),
            row("list", "list of text", false, ""),
        ];
        assert_eq!(spelled, expected);
        let linked = SchemaShape::linked(&root).rows(&root);
        assert_eq!(linked[0].kind, "[user](#user)");
        assert_eq!(linked.len(), 2);
    }

    #[test]
    fn variants_of_a_schema_are_merged_into_one_table() {
        let root = json!({
            "type": "object",
            "properties": {"gates": {"type": "integer"}},
            "required": ["gates"],
            "oneOf": [
                {"type": "object", "properties": {"verdict": {"const": "pass"}}, "required": ["verdict"]},
                {"type": "object", "properties": {"verdict": {"const": "no"}, "why": {"type": "string"}}, "required": ["verdict"]},
            ],
        });
        let expected = [
            row("gates", "whole number", true, ""),
            row("verdict", "`pass`, `no`", true, ""),
            row("why", "text", false, ""),
        ];
        assert_eq!(SchemaShape::spelled_out(&root).rows(&root), expected);
    }

    #[test]
    fn schema_types_are_described_in_plain_text() {
        let check = |schema: Value, expected: &str| {
            assert_eq!(SchemaShape::linked(&Value::Null).kind(&schema), expected);
        };
        check(json!({"anyOf": [{"type": "string"}, {"type": "null"}]}), "text");
        check(json!({"oneOf": [{"const": "a"}, {"const": "b"}]}), "`a`, `b`");
        check(json!({"enum": ["a", "b"]}), "`a`, `b`");
        check(
            json!({"type": "object", "additionalProperties": {"type": "string"}}),
            "by name: text",
        );
        check(
            json!({"oneOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}),
            "text or list of text",
        );
        let tagged = json!({"oneOf": [{"type": "object", "properties": {"spec": {"type": "string"}}}, {"const": "tasks"}]});
        check(tagged, "`{spec: …}`, `tasks`");
        check(json!(true), "anything");
    }
}
