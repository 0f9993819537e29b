//! The tokens of a source, equal for sources that differ only in formatting or comments.
//!
//! Indentation of Python and statements that end without a semicolon become tokens. Quotes of strings,
//! trailing commas and docstrings have no part in the result.

use crate::language::SourceLanguage;
use crate::literals::string_content;
use crate::syntax::NodeRef;

/// Returns the tokens at and below a node, separated by one space.
pub(crate) fn tokens_of(node: NodeRef<'_>) -> String {
    tokens_without(node, &[])
}

/// Returns the tokens at and below a node but those of the omitted nodes.
pub(crate) fn tokens_without(node: NodeRef<'_>, omitted: &[NodeRef<'_>]) -> String {
    let mut writer = TokenWriter { root: node.id(), tokens: Vec::new(), open: Vec::new() };
    let mut id = node.id();
    // The first entry is the node itself, so that an omitted root gives no token.
    for current in std::iter::once(node).chain(node.descendants()) {
        if current.id() < id {
            continue;
        }
        writer.close_until(current.id());
        id = if current.is_comment() || omitted.contains(&current) || is_docstring(current) {
            current.next_id()
        } else if let Some(token) = whole_token(current) {
            writer.tokens.push(token);
            writer.open_node(current);
            current.next_id()
        } else {
            writer.enter(current);
            current.id() + 1
        };
    }
    writer.close_until(usize::MAX);
    writer.tokens.join(" ")
}

/// A token that follows the last one of a node.
struct ClosingToken {
    end: usize,
    token: &'static str,
}

struct TokenWriter {
    /// The position of the first node.
    root: usize,
    tokens: Vec<String>,
    open: Vec<ClosingToken>,
}

impl TokenWriter {
    fn close_until(&mut self, id: usize) {
        while let Some(closing) = self.open.pop_if(|closing| closing.end <= id) {
            self.tokens.push(closing.token.to_owned());
        }
    }

    /// Remembers the tokens that follow the node.
    fn open_node(&mut self, node: NodeRef<'_>) {
        let end = node.next_id();
        if is_statement(node) && node.id() != self.root {
            self.open.push(ClosingToken { end, token: ";" });
        }
        if node.language() == SourceLanguage::Python && node.kind() == "block" {
            self.tokens.push("{".to_owned());
            self.open.push(ClosingToken { end, token: "}" });
        }
        if node.kind() == "identifier" && is_bare_parameter(node) {
            self.open.push(ClosingToken { end, token: ")" });
        }
    }

    fn enter(&mut self, node: NodeRef<'_>) {
        if node.is_leaf() && is_separator(node) {
            return;
        }
        if node.kind() == "identifier" && is_bare_parameter(node) {
            self.tokens.push("(".to_owned());
        }
        self.open_node(node);
        if !node.is_leaf() {
            return;
        }
        let text = node.text().trim();
        if matches!(text, ")" | "]" | "}") && !is_tuple_end(node) {
            self.drop_trailing_comma();
        }
        if !text.is_empty() {
            self.tokens.push(text.to_owned());
        }
        // A parameter without parentheses closes behind its own token.
    }

    fn drop_trailing_comma(&mut self) {
        let is_hole = match self.tokens.as_slice() {
            [.., before, comma] if comma == "," => before == "," || before == "[",
            _ => true,
        };
        if !is_hole {
            self.tokens.pop();
        }
    }
}

/// Returns the token of a node that is one token although nodes are below it.
fn whole_token(node: NodeRef<'_>) -> Option<String> {
    match node.kind() {
        "string"
        | "string_literal"
        | "interpreted_string_literal"
        | "char_literal"
        | "rune_literal" => {
            let content = string_content(node)?;
            let open = node.text().find(['"', '\''])?;
            let is_char = matches!(node.kind(), "char_literal" | "rune_literal");
            let quote = if is_char { '\'' } else { '"' };
            let prefix: String = node.text()[..open].to_lowercase().replace(['r', 'u'], "");
            Some(format!("{prefix}{quote}{}{quote}", content.escape_debug()))
        }
        // Their text is not covered by the nodes below them.
        "string_content" | "raw_string_literal" | "regex" | "string_fragment" | "jsx_text" => {
            Some(node.text().to_owned())
        }
        "string_start" => Some(node.text().replace('\'', "\"").to_lowercase()),
        "string_end" => Some(node.text().replace('\'', "\"")),
        _ => None,
    }
}

/// Whether the node is a statement of Python that only consists of a string.
fn is_docstring(node: NodeRef<'_>) -> bool {
    let mut children = node.children();
    node.language() == SourceLanguage::Python
        && node.kind() == "expression_statement"
        && children.next().is_some_and(|only| string_content(only).is_some())
        && children.next().is_none()
        && node.all_children().count() == 1
}

/// Whether the node is a statement in a language whose statements may end without a semicolon.
fn is_statement(node: NodeRef<'_>) -> bool {
    let Some(parent) = node.parent() else { return false };
    let is_list = match node.language() {
        SourceLanguage::Python => matches!(parent.kind(), "block" | "module"),
        SourceLanguage::Go => {
            matches!(parent.kind(), "block" | "statement_list" | "source_file")
        }
        SourceLanguage::Rust => false,
        SourceLanguage::JavaScript | SourceLanguage::TypeScript | SourceLanguage::Tsx => matches!(
            parent.kind(),
            "statement_block" | "program" | "class_body" | "switch_case" | "switch_default"
        ),
    };
    is_list
        && node.is_named()
        && node.kind() != "statement_list"
        && node.field_name() != Some("value")
}

/// Whether a leaf only separates statements.
fn is_separator(node: NodeRef<'_>) -> bool {
    match node.language() {
        SourceLanguage::Rust => false,
        SourceLanguage::Python => node.kind() == ";",
        _ => matches!(node.kind(), ";" | "\n" | "\0") && !node.is_in("for_statement"),
    }
}

/// Whether the node is the parameter of `x => …`, which formatters write as `(x) => …`.
fn is_bare_parameter(node: NodeRef<'_>) -> bool {
    node.field_name() == Some("parameter") && node.is_in("arrow_function")
}

/// Whether a comma before the closing bracket has a meaning.
fn is_tuple_end(node: NodeRef<'_>) -> bool {
    let Some(parent) = node.parent() else { return true };
    match parent.kind() {
        "tuple" | "tuple_pattern" | "tuple_expression" | "tuple_type" | "subscript" => true,
        // The outermost brackets of a macro are its arguments; those within may be tuples.
        "token_tree" => !parent.is_in("macro_invocation"),
        _ => false,
    }
}
