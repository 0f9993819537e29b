//! Lines as CommonMark has them: indentation, list markers, fences.

/// Largest number of spaces after a list marker. More are the indentation of code.
const MARKER_SPACES_MAX: usize = 4;
const TAB_STOP: usize = 4;
const FENCE_MIN: usize = 3;
const MARKER_DIGITS_MAX: usize = 9;

#[derive(Clone, Copy, Debug)]
pub(super) struct CodeFence {
    mark: u8,
    length: usize,
    /// Largest indentation of the closing line.
    indentation_max: usize,
}

impl CodeFence {
    pub(super) fn opened_by(text: &[u8], indentation_max: usize) -> Option<CodeFence> {
        let mark = *text.first().filter(|byte| matches!(byte, b'`' | b'~'))?;
        let length = text.iter().take_while(|byte| **byte == mark).count();
        let is_inline_code = mark == b'`' && text[length..].contains(&b'`');
        let is_fence = length >= FENCE_MIN && !is_inline_code;
        is_fence.then_some(CodeFence { mark, length, indentation_max })
    }

    pub(super) fn is_closed_by(&self, line: &[u8]) -> bool {
        let (column, text) = unindented(line, 0);
        column <= self.indentation_max
            && text.len() >= self.length
            && text.iter().all(|byte| *byte == self.mark)
    }
}

/// The text of a line after its list markers.
pub(super) struct ListItem<'a> {
    pub(super) text: &'a [u8],
    pub(super) column: usize,
    /// The column at which the content of the first marker's item begins.
    pub(super) outermost: Option<usize>,
}

pub(super) fn past_markers(text: &[u8], column: usize) -> ListItem<'_> {
    let mut item = ListItem { text, column, outermost: None };
    while let Some(width) = marker_width(item.text) {
        let marker_end = item.column + width;
        let (column, text) = unindented(&item.text[width..], marker_end);
        let is_code = column - marker_end > MARKER_SPACES_MAX;
        let content = if is_code || text.is_empty() { marker_end + 1 } else { column };
        item.outermost = item.outermost.or(Some(content));
        (item.column, item.text) = (content, text);
        if is_code {
            item.text = b"";
        }
    }
    item
}

/// Returns the length of the list marker at the beginning of a text.
fn marker_width(text: &[u8]) -> Option<usize> {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let width = match (digits, text.get(digits)?) {
        (0, b'-' | b'*' | b'+') => 1,
        (1..=MARKER_DIGITS_MAX, b'.' | b')') => digits + 1,
        _ => return None,
    };
    matches!(text.get(width), None | Some(b' ' | b'\t')).then_some(width)
}

/// Whether a line is like `* * *`, which is no list.
pub(super) fn is_thematic_break(text: &[u8]) -> bool {
    let Some(mark @ (b'-' | b'*' | b'_')) = text.first() else { return false };
    let is_part = |byte: &u8| byte == mark || matches!(byte, b' ' | b'\t');
    text.iter().all(is_part) && text.iter().filter(|byte| *byte == mark).count() >= 3
}

/// Returns a text without its indentation, and the column where it then begins.
pub(super) fn unindented(text: &[u8], mut column: usize) -> (usize, &[u8]) {
    for (at, byte) in text.iter().enumerate() {
        match byte {
            b' ' => column += 1,
            b'\t' => column += TAB_STOP - column % TAB_STOP,
            _ => return (column, &text[at..]),
        }
    }
    (column, b"")
}

pub(super) fn trim_end(line: &[u8]) -> &[u8] {
    let end = line.iter().rposition(|byte| !matches!(byte, b' ' | b'\t' | b'\r'));
    &line[..end.map_or(0, |last| last + 1)]
}
