//! Reads machine-readable reports of test runners and linters into check records.
//!
//! - `report`: the format of a report, and its reader
//! - `files`: report files and directories, opened without following links
//! - `junit`, `ctrf`, `tap`, `sarif`, `go_test`, `libtest`, `jest`: one reader per format
//! - `json`: bounded reading of JSON
//! - `sink`: collects the checks; `project_root`: makes their names independent of the directory
//! - `error`: the reasons why a report is refused
//!
//! A report is untrusted: the code under test can write it. Sizes, depths and numbers are limited, entities are
//! refused, and errors contain no text of the report. A report that ends too early is an error, or broken.

mod ctrf;
mod error;
mod files;
mod go_test;
mod jest;
mod json;
mod junit;
mod libtest;
mod project_root;
mod report;
mod sarif;
mod sink;
mod tap;

use std::path::Path;

use hookloop_core::checks::CheckRecords;

pub use error::ReportError;
pub use files::{DIRECTORY_DEPTH_MAX, ENTRIES_MAX, FILES_MAX, TOTAL_BYTES_MAX, read_files};
pub use json::JSON_DEPTH_MAX;
pub use junit::{ATTRIBUTE_BYTES_MAX, ATTRIBUTES_MAX, XML_DEPTH_MAX};
pub use report::{FILE_BYTES_MAX, ReportFormat, go_test_text, recognize};
pub use tap::SUBTEST_DEPTH_MAX;

/// Reads one report. Its format is recognized from its content.
///
/// `root` is the directory of the project: absolute paths below it become relative in names.
pub fn read(bytes: &[u8], root: &Path) -> Result<CheckRecords, ReportError> {
    let text = report::text_of(bytes)?;
    let format = report::format_of(&text)?;
    let mut sink = sink::ReportSink::new(format.name(), root);
    report::read_into(&text, format, &mut sink)?;
    Ok(sink.finish())
}
