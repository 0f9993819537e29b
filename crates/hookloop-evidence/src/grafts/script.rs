//! Puts the in-source tests of the base into a script of the work: `if (import.meta.vitest) { … }`.

use crate::error::EvidenceError;
use crate::grafts::text_edits::TextEdits;
use crate::language::SourceLanguage;
use crate::syntax::{NodeRef, SyntaxTree};
use crate::tokens::tokens_of;

/// The value that is only defined while Vitest runs.
const VITEST_MARK: &str = "import.meta.vitest";

pub(super) fn graft(
    language: SourceLanguage,
    base: &str,
    work: &str,
) -> Result<Option<String>, EvidenceError> {
    if !base.contains(VITEST_MARK) && !work.contains(VITEST_MARK) {
        return Ok(None);
    }
    let base_tree = SyntaxTree::parse(language, base)?;
    let work_tree = SyntaxTree::parse(language, work)?;
    let of_base = test_blocks(base_tree.root());
    let of_work = test_blocks(work_tree.root());
    let tokens = |blocks: &[NodeRef<'_>]| blocks.iter().copied().map(tokens_of).collect::<Vec<_>>();
    if tokens(&of_base) == tokens(&of_work) {
        return Ok(None);
    }
    let mut edits = TextEdits::default();
    for (index, block) in of_work.iter().enumerate() {
        let text = of_base.get(index).map_or("", |block| block.text());
        edits.replace(block.start()..block.end(), text);
    }
    for block in of_base.iter().skip(of_work.len()) {
        edits.insert(work.len(), block.text());
    }
    Ok(Some(edits.apply(work)))
}

/// Returns the statements at the top of a script that only run in Vitest.
fn test_blocks(root: NodeRef<'_>) -> Vec<NodeRef<'_>> {
    let is_block = |node: &NodeRef<'_>| {
        let condition = node.field("condition");
        node.kind() == "if_statement"
            && condition.is_some_and(|condition| condition.text().contains(VITEST_MARK))
    };
    root.children().filter(is_block).collect()
}
