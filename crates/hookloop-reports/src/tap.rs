//! Reads TAP, the Test Anything Protocol, versions 12 to 14.
//!
//! Subtests are told apart by their indentation. Their test points come before that of their parent, or in a block
//! after it: `ok 1 - parent {`.

mod diagnostics;
mod tap_line;

use hookloop_core::checks::{CHECKS_MAX, CheckCounts, CheckOutcome};

use crate::error::ReportError;
use crate::sink::{ReportSink, append, title, whole_ms};
use diagnostics::YamlBlock;
use tap_line::{TapDirective, TapLine, TestPoint};

/// Maximum depth of subtests.
pub const SUBTEST_DEPTH_MAX: usize = 64;
/// The spaces that a tab stands for in an indentation.
const TAB_WIDTH: usize = 4;

/// Whether a text is TAP: it has a version line, or a plan and begins with a plan or a test point.
pub(crate) fn is_tap(text: &str) -> bool {
    let lines = || text.lines().map(str::trim_end).filter(|line| !line.is_empty());
    if lines().any(tap_line::is_version) {
        return true;
    }
    let begins = lines()
        .find(|line| !line.starts_with('#'))
        .is_some_and(|line| matches!(TapLine::of(line), TapLine::Plan(_) | TapLine::Point(_)));
    begins && lines().any(|line| tap_line::plan(line).is_some())
}

pub(crate) fn read(text: &str, sink: &mut ReportSink) -> Result<(), ReportError> {
    let mut stream = TapStream::default();
    for line in text.lines() {
        stream.take(line)?;
    }
    stream.finish(sink);
    Ok(())
}

/// A test point whose parent is possibly not known yet.
#[derive(Debug)]
struct TapNode {
    name: String,
    outcome: CheckOutcome,
    ms: Option<u64>,
    cause: String,
    parent: Option<usize>,
    /// The name of a parent whose own test point is missing.
    missing_parent: Option<String>,
}

/// Subtests whose parent's test point has not come yet.
#[derive(Debug, Default)]
struct SubtestGroup {
    nodes: Vec<usize>,
    name: Option<String>,
}

/// An open list of test points with the same indentation.
#[derive(Debug, Default)]
struct TapLevel {
    indent: usize,
    plan: Option<u64>,
    seen: u64,
    nodes: Vec<usize>,
    /// The parent, if its test point came before.
    parent: Option<usize>,
    /// The name in the comment `# Subtest: name`.
    name: Option<String>,
    /// The subtests of the next test point.
    group: Option<SubtestGroup>,
    /// The last test point, if it may begin a block of subtests.
    block: Option<usize>,
}

impl TapLevel {
    fn is_new(&self) -> bool {
        self.seen == 0 && self.plan.is_none() && self.indent > 0
    }
}

/// The state of a stream that is read.
#[derive(Debug, Default)]
struct TapStream {
    nodes: Vec<TapNode>,
    /// Test points beyond the limit of listed checks.
    beyond: CheckCounts,
    levels: Vec<TapLevel>,
    announced: Option<String>,
    yaml: Option<YamlBlock>,
    /// The last test point, until a line follows that is no diagnostic of it.
    last: Option<usize>,
    /// Whether the previous line was a test point.
    is_after_point: bool,
    is_broken: bool,
}

impl TapStream {
    fn take(&mut self, line: &str) -> Result<(), ReportError> {
        let line = line.trim_end();
        let content = line.trim_start();
        let width = |byte: u8| if byte == b'\t' { TAB_WIDTH } else { 1 };
        let indent = line[..line.len() - content.len()].bytes().map(width).sum();
        if let Some(block) = &mut self.yaml {
            if content == "..." && indent == block.indent {
                self.end_yaml();
            } else {
                block.push(line);
            }
            return Ok(());
        }
        if content.is_empty() {
            return Ok(());
        }
        let was_after_point = std::mem::take(&mut self.is_after_point);
        match TapLine::of(content) {
            TapLine::Version => self.start(indent),
            TapLine::Plan(number) => self.plan(indent, number),
            TapLine::Point(point) => self.point(indent, point),
            TapLine::YamlStart if was_after_point => {
                self.yaml = Some(YamlBlock::new(indent));
                Ok(())
            }
            TapLine::BlockEnd => self.go_to(indent),
            TapLine::Subtest(name) => self.announce(indent, name),
            TapLine::Comment(comment) => {
                self.comment(comment);
                Ok(())
            }
            TapLine::BailOut => {
                self.is_broken = true;
                Ok(())
            }
            TapLine::YamlStart | TapLine::Other => Ok(()),
        }
    }

    /// Begins a stream. Another stream may have ended before it in the same file.
    fn start(&mut self, indent: usize) -> Result<(), ReportError> {
        let root = self.levels.first();
        let has_begun = root.is_some_and(|root| root.seen > 0 || root.plan.is_some());
        if indent == 0 && has_begun {
            self.close_all();
        }
        self.go_to(indent)
    }

    fn plan(&mut self, indent: usize, number: u64) -> Result<(), ReportError> {
        self.go_to(indent)?;
        if let Some(level) = self.levels.last_mut() {
            self.is_broken |= level.plan.is_some();
            level.plan = Some(number);
        }
        Ok(())
    }

    fn point(&mut self, indent: usize, point: TestPoint) -> Result<(), ReportError> {
        self.go_to(indent)?;
        let announced = self.announced.take();
        let place = self.nodes.len();
        let Some(level) = self.levels.last_mut() else { return Ok(()) };
        level.seen += 1;
        let group = level.group.take().unwrap_or_default();
        let outcome = outcome(&point);
        self.last = None;
        if place == CHECKS_MAX {
            self.beyond.add(outcome);
            return Ok(());
        }
        let number = point.number.unwrap_or(level.seen);
        let name = match point.description {
            empty if empty.is_empty() => {
                group.name.or(announced).unwrap_or_else(|| format!("test {number}"))
            }
            description => description,
        };
        level.nodes.push(place);
        level.block = point.opens_block.then_some(place);
        for subtest in group.nodes {
            self.nodes[subtest].parent = Some(place);
        }
        let ms = point.ms.and_then(whole_ms);
        let cause = String::new();
        let node = TapNode { name, outcome, ms, cause, parent: None, missing_parent: None };
        self.nodes.push(node);
        self.last = Some(place);
        self.is_after_point = true;
        Ok(())
    }

    /// Takes a comment after a failed test point as its cause.
    fn comment(&mut self, comment: &str) {
        let node = self.last.and_then(|last| self.nodes.get_mut(last));
        if let Some(node) = node.filter(|node| node.outcome == CheckOutcome::Failed) {
            append(&mut node.cause, comment);
            append(&mut node.cause, "\n");
        }
    }

    fn end_yaml(&mut self) {
        let Some(block) = self.yaml.take() else { return };
        let found = block.diagnostics();
        if let Some(node) = self.last.take().and_then(|last| self.nodes.get_mut(last)) {
            node.ms = found.ms.or(node.ms);
            node.cause = found.cause;
        }
    }

    /// Takes a comment `# Subtest: name`, which is indented as the subtests or as their parent.
    fn announce(&mut self, indent: usize, name: String) -> Result<(), ReportError> {
        self.go_to(indent)?;
        self.last = None;
        if let Some(level) = self.levels.last_mut().filter(|level| level.is_new()) {
            level.name.get_or_insert_with(|| name.clone());
        }
        self.announced = Some(name);
        Ok(())
    }

    /// Closes the levels that are indented more, and opens one if none has this indentation.
    fn go_to(&mut self, indent: usize) -> Result<(), ReportError> {
        if self.levels.is_empty() {
            self.levels.push(TapLevel::default());
        }
        let open = self.levels.len();
        while self.levels.last().is_some_and(|top| top.indent > indent) {
            self.close_level();
        }
        let has_closed = self.levels.len() < open;
        let Some(above) = self.levels.last_mut().filter(|top| top.indent < indent) else {
            return Ok(());
        };
        // The parents of levels that were indented still more are in the new level.
        let group = above.group.take_if(|_| has_closed);
        let parent = above.block.take();
        let name = self.announced.take();
        if self.levels.len() > SUBTEST_DEPTH_MAX {
            return Err(ReportError::TooDeep { part: "a subtest", limit: SUBTEST_DEPTH_MAX });
        }
        self.levels.push(TapLevel { indent, parent, name, group, ..TapLevel::default() });
        Ok(())
    }

    /// Closes the innermost level and gives its test points to their parent.
    fn close_level(&mut self) {
        let Some(mut level) = self.levels.pop() else { return };
        self.is_broken |= level.plan != Some(level.seen);
        if let Some(mut group) = level.group.take() {
            self.set_missing_parent(&group);
            level.nodes.append(&mut group.nodes);
        }
        if let Some(parent) = level.parent {
            for node in level.nodes {
                self.nodes[node].parent = Some(parent);
            }
            return;
        }
        let Some(above) = self.levels.last_mut() else { return };
        let group = above.group.get_or_insert_default();
        group.nodes.append(&mut level.nodes);
        group.name = level.name;
    }

    /// Names the parent of subtests that has no test point.
    fn set_missing_parent(&mut self, group: &SubtestGroup) {
        self.is_broken = true;
        let Some(name) = &group.name else { return };
        for node in &group.nodes {
            let missing = &mut self.nodes[*node].missing_parent;
            *missing = Some(match missing.take() {
                Some(below) => title(&format!("{name} > {below}")).to_owned(),
                None => name.clone(),
            });
        }
    }

    fn close_all(&mut self) {
        while !self.levels.is_empty() {
            self.close_level();
        }
        self.last = None;
        self.announced = None;
    }

    fn finish(mut self, sink: &mut ReportSink) {
        // A stream without a plan did not end, and neither did one within diagnostics.
        self.is_broken |= self.yaml.is_some() || self.levels.is_empty();
        self.end_yaml();
        self.close_all();
        for node in &self.nodes {
            if node.outcome == CheckOutcome::Failed && node.name.starts_with('/') {
                // Node.js names a test after its file if the file did not load or its process failed.
                self.is_broken = true;
            }
            sink.add(&self.path(node), node.outcome, node.ms, &node.cause);
        }
        if self.is_broken {
            sink.set_broken();
        }
        for (number, outcome) in [
            (self.beyond.passed, CheckOutcome::Passed),
            (self.beyond.failed, CheckOutcome::Failed),
            (self.beyond.skipped, CheckOutcome::Skipped),
        ] {
            for _ in 0..number {
                sink.add("", outcome, None, "");
            }
        }
    }

    /// Returns the names of a test point's parents and its own, outermost first.
    fn path(&self, node: &TapNode) -> String {
        let mut names = vec![node.name.as_str()];
        let mut above = node;
        for _ in 0..SUBTEST_DEPTH_MAX {
            if let Some(missing) = &above.missing_parent {
                names.push(missing);
            }
            let Some(parent) = above.parent.and_then(|parent| self.nodes.get(parent)) else {
                break;
            };
            names.push(&parent.name);
            above = parent;
        }
        names.reverse();
        names.join(" > ")
    }
}

/// Returns the outcome of a test point. The result of a test with `TODO` does not count.
fn outcome(point: &TestPoint) -> CheckOutcome {
    match (point.directive, point.is_ok) {
        (Some(TapDirective::Todo), _) | (Some(TapDirective::Skip), true) => CheckOutcome::Skipped,
        (_, true) => CheckOutcome::Passed,
        (_, false) => CheckOutcome::Failed,
    }
}

#[cfg(test)]
mod tests;
