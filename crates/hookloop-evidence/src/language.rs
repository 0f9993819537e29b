//! The languages whose tests are read, and their grammars.

use tree_sitter::Language;

/// A language whose tests are read by syntax.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SourceLanguage {
    Python,
    Rust,
    JavaScript,
    TypeScript,
    Tsx,
    Go,
}

impl SourceLanguage {
    /// Returns the language of a file by its extension.
    pub fn of_path(path: &str) -> Option<SourceLanguage> {
        let name = path.rsplit('/').next().unwrap_or(path);
        let (stem, extension) = name.rsplit_once('.')?;
        if stem.is_empty() {
            return None;
        }
        match extension {
            "py" | "pyi" => Some(SourceLanguage::Python),
            "rs" => Some(SourceLanguage::Rust),
            "js" | "mjs" | "cjs" | "jsx" => Some(SourceLanguage::JavaScript),
            "ts" | "mts" | "cts" => Some(SourceLanguage::TypeScript),
            "tsx" => Some(SourceLanguage::Tsx),
            "go" => Some(SourceLanguage::Go),
            _ => None,
        }
    }

    pub(crate) fn grammar(self) -> Language {
        match self {
            SourceLanguage::Python => tree_sitter_python::LANGUAGE.into(),
            SourceLanguage::Rust => tree_sitter_rust::LANGUAGE.into(),
            SourceLanguage::JavaScript => tree_sitter_javascript::LANGUAGE.into(),
            SourceLanguage::TypeScript => tree_sitter_typescript::LANGUAGE_TYPESCRIPT.into(),
            SourceLanguage::Tsx => tree_sitter_typescript::LANGUAGE_TSX.into(),
            SourceLanguage::Go => tree_sitter_go::LANGUAGE.into(),
        }
    }
}
