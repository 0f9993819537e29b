//! Reads JUnit XML as many runners write it: pytest, nextest, Vitest, Node.js, Surefire, Gradle.
//!
//! The document is read as a stream. Document types and entities are refused, so nothing is expanded.

mod test_case;
mod xml_text;

use quick_xml::Reader;
use quick_xml::errors::Error as XmlError;
use quick_xml::events::{BytesStart, Event};

use crate::error::{ReportError, position};
use crate::sink::{ReportSink, append, title};
use test_case::{CaseElement, SuitesAround, TestCase, joined};
use xml_text::{resolved, unescaped};

/// Maximum depth of elements.
pub const XML_DEPTH_MAX: usize = 64;
/// Maximum bytes of an attribute.
pub const ATTRIBUTE_BYTES_MAX: usize = 1024 * 1024;
/// Maximum attributes of an element.
pub const ATTRIBUTES_MAX: usize = 256;

pub(crate) fn read(text: &str, sink: &mut ReportSink) -> Result<(), ReportError> {
    let mut reader = Reader::from_str(text);
    reader.config_mut().expand_empty_elements = true;
    let mut document = JunitDocument::new(text);
    loop {
        let event = reader.read_event().map_err(|error| {
            let at = usize::try_from(reader.error_position()).unwrap_or(usize::MAX);
            xml_error(text, at, &error)
        })?;
        document.offset = usize::try_from(reader.buffer_position()).unwrap_or(usize::MAX);
        match event {
            Event::Start(start) => document.open(&start, sink)?,
            Event::End(_) => document.close(sink),
            Event::Text(more) => document.text(&more)?,
            Event::CData(more) => document.text(&more)?,
            Event::GeneralRef(name) => {
                let char = resolved(&name).ok_or_else(|| document.entity_refused())?;
                document.text(char.encode_utf8(&mut [0; 4]))?;
            }
            Event::DocType(_) => return Err(document.entity_refused()),
            Event::Eof => return document.end(),
            Event::Empty(_) | Event::Comment(_) | Event::Decl(_) | Event::PI(_) => {}
        }
    }
}

/// Returns an error of the XML reader without the names that it contains.
fn xml_error(text: &str, offset: usize, error: &XmlError) -> ReportError {
    let reason = match error {
        XmlError::Syntax(_) => "the report ends within a tag or a comment",
        XmlError::IllFormed(_) => "XML is not well-formed: a tag or a reference does not match",
        _ => "XML is malformed",
    };
    ReportError::malformed(text, offset, reason)
}

/// The state of a document that is read.
struct JunitDocument<'t> {
    source: &'t str,
    /// The end of the current event in the source.
    offset: usize,
    depth: usize,
    has_root: bool,
    suites: Vec<OpenSuite>,
    case: Option<OpenCase>,
    capture: Option<CauseCapture>,
}

/// An open `testsuites` or `testsuite`.
struct OpenSuite {
    name: String,
    /// The names of the suites around it and its own, outermost first.
    path: String,
    depth: usize,
    /// The failures and errors that the attributes count.
    declared: u64,
    /// The failures and errors that were found.
    found: u64,
}

/// An open `testcase`.
struct OpenCase {
    depth: usize,
    case: TestCase,
}

/// An open element whose text is a cause.
struct CauseCapture {
    depth: usize,
    element: CaseElement,
    message: String,
    text: String,
}

impl<'t> JunitDocument<'t> {
    fn new(source: &'t str) -> JunitDocument<'t> {
        JunitDocument {
            source,
            offset: 0,
            depth: 0,
            has_root: false,
            suites: Vec::new(),
            case: None,
            capture: None,
        }
    }

    fn entity_refused(&self) -> ReportError {
        let (line, column) = position(self.source, self.offset);
        ReportError::EntityRefused { line, column }
    }

    fn malformed(&self, reason: &'static str) -> ReportError {
        ReportError::malformed(self.source, self.offset, reason)
    }

    fn open(&mut self, start: &BytesStart<'_>, sink: &mut ReportSink) -> Result<(), ReportError> {
        self.depth += 1;
        if self.depth > XML_DEPTH_MAX {
            return Err(ReportError::TooDeep { part: "the report", limit: XML_DEPTH_MAX });
        }
        let local = start.local_name();
        let name = local.as_ref();
        if self.depth == 1 {
            self.check_root(name)?;
        }
        match name {
            "testsuites" | "testsuite" if self.case.is_none() => self.open_suite(start),
            "testcase" if self.case.is_none() => self.open_case(start),
            "testcase" => Err(self.malformed("a test case in a test case")),
            _ => self.open_part(name, start, sink),
        }
    }

    fn check_root(&mut self, name: &str) -> Result<(), ReportError> {
        if self.has_root {
            return Err(self.malformed("a second root element"));
        }
        self.has_root = true;
        if matches!(name, "testsuites" | "testsuite") {
            return Ok(());
        }
        Err(ReportError::UnknownFormat)
    }

    /// Whether the current element is directly in a suite.
    fn is_in_suite(&self) -> bool {
        self.case.is_none() && self.suites.last().is_some_and(|suite| suite.depth + 1 == self.depth)
    }

    fn open_suite(&mut self, start: &BytesStart<'_>) -> Result<(), ReportError> {
        let mut suite = OpenSuite {
            name: String::new(),
            path: String::new(),
            depth: self.depth,
            declared: 0,
            found: 0,
        };
        self.attributes(start, |key, value| match key {
            // Only suites have names that are part of the names of tests.
            "name" if start.local_name().as_ref() == "testsuite" => {
                suite.name = title(&value).to_owned();
            }
            "failures" | "errors" => {
                suite.declared = suite.declared.saturating_add(value.trim().parse().unwrap_or(0));
            }
            _ => {}
        })?;
        let above = self.suites.last().map_or("", |above| &above.path);
        suite.path = title(&joined(above, &suite.name)).to_owned();
        self.suites.push(suite);
        Ok(())
    }

    fn open_case(&mut self, start: &BytesStart<'_>) -> Result<(), ReportError> {
        let mut case = TestCase::default();
        self.attributes(start, |key, value| match key {
            "name" => case.name = value,
            "classname" => case.class_name = value,
            "file" => case.file = value,
            "time" => case.set_time(&value),
            "status" | "result" => case.set_status(&value),
            _ => {}
        })?;
        self.case = Some(OpenCase { depth: self.depth, case });
        Ok(())
    }

    /// Opens an element in a test case, or an error of a whole suite.
    fn open_part(
        &mut self,
        name: &str,
        start: &BytesStart<'_>,
        sink: &mut ReportSink,
    ) -> Result<(), ReportError> {
        let is_in_case = self.case.as_ref().is_some_and(|open| open.depth + 1 == self.depth);
        let Some(element) = CaseElement::of(name) else { return Ok(()) };
        let is_of_suite = self.is_in_suite() && element == CaseElement::Failure;
        if !is_in_case && !is_of_suite {
            return Ok(());
        }
        let mut message = String::new();
        let mut is_todo = false;
        self.attributes(start, |key, value| match key {
            "message" => message = value,
            "type" => is_todo = value == "todo",
            _ => {}
        })?;
        let element = match element {
            CaseElement::Skipped if is_todo => CaseElement::Todo,
            other => other,
        };
        if !is_in_case {
            sink.set_broken();
        }
        self.capture =
            Some(CauseCapture { depth: self.depth, element, message, text: String::new() });
        Ok(())
    }

    fn attributes(
        &self,
        start: &BytesStart<'_>,
        mut take: impl FnMut(&str, String),
    ) -> Result<(), ReportError> {
        for (number, attribute) in start.attributes().with_checks(false).enumerate() {
            if number == ATTRIBUTES_MAX {
                let things = "attributes";
                let part = "an element";
                return Err(ReportError::TooMany { part, things, limit: ATTRIBUTES_MAX });
            }
            let attribute = attribute.map_err(|_| self.malformed("an attribute is malformed"))?;
            if attribute.value.len() > ATTRIBUTE_BYTES_MAX {
                let limit = ATTRIBUTE_BYTES_MAX as u64;
                return Err(ReportError::TooLarge { part: "an attribute", limit });
            }
            let value = unescaped(&attribute.value).ok_or_else(|| self.entity_refused())?;
            take(attribute.key.local_name().as_ref(), value);
        }
        Ok(())
    }

    fn text(&mut self, more: &str) -> Result<(), ReportError> {
        if self.depth == 0 && !more.trim().is_empty() {
            return Err(self.malformed("text outside of the root element"));
        }
        // Text of elements within a failure, such as the whole output, is no cause.
        if let Some(capture) = &mut self.capture
            && capture.depth == self.depth
        {
            append(&mut capture.text, more);
        }
        Ok(())
    }

    fn close(&mut self, sink: &mut ReportSink) {
        if let Some(capture) = self.capture.take_if(|capture| capture.depth == self.depth) {
            self.close_part(&capture, sink);
        }
        if let Some(open) = self.case.take_if(|open| open.depth == self.depth) {
            self.close_case(&open.case, sink);
        }
        if let Some(suite) = self.suites.pop_if(|suite| suite.depth == self.depth) {
            if suite.declared > 0 && suite.found == 0 {
                sink.set_broken();
            }
            self.add_found(suite.found);
        }
        self.depth = self.depth.saturating_sub(1);
    }

    fn close_part(&mut self, capture: &CauseCapture, sink: &mut ReportSink) {
        let cause = test_case::cause_text(&capture.message, &capture.text);
        if let Some(open) = &mut self.case {
            open.case.add_element(capture.element, &capture.message, &cause);
        } else {
            let name = self.suites.last().map_or("", |suite| &suite.name);
            test_case::add_suite_failure(name, &cause, sink);
            self.add_found(1);
        }
    }

    fn close_case(&mut self, case: &TestCase, sink: &mut ReportSink) {
        if case.has_failure_element() {
            self.add_found(1);
        }
        let suite = self.suites.last();
        let around = SuitesAround {
            name: suite.map_or("", |suite| &suite.name),
            path: suite.map_or("", |suite| &suite.path),
        };
        case.add_to(around, sink);
    }

    fn add_found(&mut self, number: u64) {
        if let Some(suite) = self.suites.last_mut() {
            suite.found = suite.found.saturating_add(number);
        }
    }

    fn end(&self) -> Result<(), ReportError> {
        if self.has_root && self.depth == 0 {
            return Ok(());
        }
        Err(self.malformed("the report ends too early"))
    }
}

#[cfg(test)]
mod tests;
