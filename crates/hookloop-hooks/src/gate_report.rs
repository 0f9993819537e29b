//! The report of a gate: the directory that it writes to, and the records that are read from it.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use globset::{GlobBuilder, GlobSetBuilder};
use hookloop_core::checks::{self, CheckRecords};
use hookloop_core::hook::{CommandText, Hook, HookHandler, HookSource};
use hookloop_core::point::Point;
use hookloop_reports::ReportFormat;

use crate::report_request::ReportRequest;
use crate::sandbox::TemporaryDirectory;

/// The variable that names the file or directory for a gate's own report.
const REPORT_VARIABLE: &str = "HOOKLOOP_REPORT";
/// The name of a gate's own report in its directory.
const OWN: &str = "report";
/// Maximum directories and files that are searched for reports.
const SEARCHED_MAX: usize = 200_000;
/// Maximum report files of one run.
const FILES_MAX: usize = 10_000;
/// Maximum bytes of standard output that are read as a report.
const OUTPUT_MAX: u64 = 64 * 1024 * 1024;
/// Differences between the clocks of files and of this program.
const CLOCK_STEP: Duration = Duration::from_secs(1);
/// Starts of the lines that name a script of a package: npm and pnpm, Yarn and Bun, Yarn 1.
const BANNERS: [&[u8]; 3] = [b"> ", b"$ ", b"yarn run "];
/// Maximum lines before the output of a script. Scripts may start other scripts.
const BANNER_LINES_MAX: usize = 20;

const REPLACED: &str = "the directory for its report was replaced while it ran";

/// The place of a gate's report, which is deleted after the run.
#[derive(Debug)]
pub(crate) struct GateReport {
    directory: TemporaryDirectory,
    request: ReportRequest,
    /// Patterns of the report files that the gate's definition names.
    named: Vec<String>,
    started: SystemTime,
}

/// The records of a gate's run, or the reason why the run can't count.
#[derive(Debug)]
pub(crate) enum ReportResult {
    /// The gate has no report, or a runner did not write one.
    Unknown,
    /// The records of a report file.
    Report(CheckRecords),
    /// The records from the output.
    Output(CheckRecords),
    /// The report that the gate's definition names is missing or can't be read.
    Unreadable(String),
}

/// The output of a gate, and the directories of its run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReportedRun<'r> {
    /// The working directory of the gate, as this program sees it.
    pub(crate) cwd: &'r Path,
    /// The same directory, as the gate saw it.
    pub(crate) seen: &'r Path,
    /// The files with all of standard output and standard error, if there are some.
    pub(crate) streams: [Option<&'r Path>; 2],
    pub(crate) printed: &'r str,
    /// Whether `printed` lacks a part of the output.
    pub(crate) is_cut: bool,
}

impl GateReport {
    /// Creates the place for the report of a hook. `None` for a hook that reports nothing.
    pub(crate) fn new(
        hook: &Hook,
        point: &Point,
        parent: &Path,
        cwd: &Path,
    ) -> Result<Option<GateReport>, String> {
        let HookHandler::Command(command) = &hook.handler else { return Ok(None) };
        // A command of hookloop's own, such as a mutation engine, is no test run.
        if !reports(point) || hook.source == HookSource::Builtin {
            return Ok(None);
        }
        fs::create_dir_all(parent).map_err(|error| format!("{}: {error}", parent.display()))?;
        let directory = TemporaryDirectory::below(parent, "its report")?;
        let request = ReportRequest::of(command, cwd, directory.path());
        let named = hook.options.report.clone();
        Ok(Some(GateReport { directory, request, named, started: SystemTime::now() }))
    }

    pub(crate) fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// Returns the command that also asks for a report.
    pub(crate) fn added_to(&self, command: &CommandText) -> CommandText {
        self.request.added_to(command)
    }

    /// Adds the variables that ask for a report. A value of the user stays.
    pub(crate) fn add_variables(&self, env: &mut Vec<(OsString, OsString)>) {
        for (name, value) in &self.request.env {
            match env.iter_mut().find(|(known, _)| known == name) {
                Some((_, own)) => {
                    own.push(" ");
                    own.push(value);
                }
                None => env.push((name.into(), value.into())),
            }
        }
        env.push((REPORT_VARIABLE.into(), self.directory().join(OWN).into()));
    }

    /// Removes the report of an earlier attempt.
    pub(crate) fn begin(&mut self) -> std::io::Result<()> {
        self.started = SystemTime::now();
        if !self.is_own() {
            return Err(std::io::Error::other(REPLACED));
        }
        for entry in fs::read_dir(self.directory())? {
            let entry = entry?;
            match entry.file_type()?.is_dir() {
                true => fs::remove_dir_all(entry.path())?,
                false => fs::remove_file(entry.path())?,
            }
        }
        Ok(())
    }

    /// Whether the place of the report is a directory, and no link to another one. The gate may have removed it.
    fn is_own(&self) -> bool {
        match self.directory().symlink_metadata() {
            Ok(found) => found.is_dir(),
            Err(error) => error.kind() == std::io::ErrorKind::NotFound,
        }
    }

    /// Reads the records of a run that has ended.
    pub(crate) fn read(&self, run: ReportedRun<'_>) -> ReportResult {
        if !self.is_own() {
            return ReportResult::Unreadable(REPLACED.to_owned());
        }
        if !self.named.is_empty() {
            return match self.find(&self.named, run.cwd) {
                Ok(files) if files.is_empty() => ReportResult::Unreadable(format!(
                    "its report was not written: {}",
                    self.named.join(", ")
                )),
                Ok(files) => read_all(&files, run.seen, true),
                Err(why) => ReportResult::Unreadable(why),
            };
        }
        let own = self.directory().join(OWN);
        if own.symlink_metadata().is_ok() {
            return read_all(&[own], run.seen, true);
        }
        let mut asked: Vec<PathBuf> = fs::read_dir(self.directory())
            .map(|entries| entries.flatten().take(FILES_MAX).map(|entry| entry.path()).collect())
            .unwrap_or_default();
        asked.sort();
        if asked.is_empty() && !self.request.files.is_empty() {
            let patterns: Vec<String> =
                self.request.files.iter().map(|pattern| (*pattern).to_owned()).collect();
            asked = self.find(&patterns, run.cwd).unwrap_or_default();
        }
        if !asked.is_empty() {
            match read_all(&asked, run.seen, false) {
                ReportResult::Unknown => {}
                found => return found,
            }
        }
        from_output(run)
    }

    /// Returns the files of the patterns that were written since the run began.
    fn find(&self, patterns: &[String], cwd: &Path) -> Result<Vec<PathBuf>, String> {
        let mut wanted = GlobSetBuilder::new();
        for pattern in patterns {
            let glob = GlobBuilder::new(pattern).literal_separator(true).build();
            wanted.add(glob.map_err(|error| format!("`{pattern}`: {error}"))?);
        }
        let wanted = wanted.build().map_err(|error| error.to_string())?;
        let since = self.started.checked_sub(CLOCK_STEP).unwrap_or(self.started);
        let mut found = Vec::new();
        let mut directories = vec![cwd.to_owned()];
        let mut searched = 0;
        while let Some(directory) = directories.pop() {
            let Ok(entries) = fs::read_dir(&directory) else { continue };
            for entry in entries.flatten() {
                searched += 1;
                if searched > SEARCHED_MAX || found.len() > FILES_MAX {
                    return Err(format!(
                        "more than {SEARCHED_MAX} files would be searched for its report"
                    ));
                }
                let (Ok(kind), path) = (entry.file_type(), entry.path()) else { continue };
                let name = path.strip_prefix(cwd).unwrap_or(&path);
                if kind.is_dir() && entry.file_name() != ".git" {
                    directories.push(path);
                } else if kind.is_file()
                    && wanted.is_match(name)
                    && entry.metadata().and_then(|data| data.modified()).is_ok_and(|at| at >= since)
                {
                    found.push(path);
                }
            }
        }
        found.sort();
        Ok(found)
    }
}

/// Whether hooks of a point report checks.
fn reports(point: &Point) -> bool {
    matches!(point, Point::Validation | Point::Stop | Point::BeforeSubmit | Point::BeforeMerge)
}

fn read_all(files: &[PathBuf], seen: &Path, is_required: bool) -> ReportResult {
    match hookloop_reports::read_files(files, seen) {
        Ok(records) => ReportResult::Report(records),
        Err(error) if is_required => {
            ReportResult::Unreadable(format!("its report can't be read: {error}"))
        }
        Err(error) => {
            tracing::debug!(%error, "a runner's report can't be read");
            ReportResult::Unknown
        }
    }
}

/// Reads the records from the output: a report, else the text of a known runner.
fn from_output(run: ReportedRun<'_>) -> ReportResult {
    let start = without_banner(run.printed.as_bytes());
    if start.starts_with(b"TAP version") || start.starts_with(b"{") {
        let whole = run.streams[0].and_then(whole_output);
        let whole = whole.unwrap_or_else(|| run.printed.as_bytes().to_vec());
        if let Ok(records) = hookloop_reports::read(without_banner(&whole), run.seen) {
            return ReportResult::Output(records);
        }
    }
    let streams = run.streams.iter().flatten().filter(|_| run.is_cut);
    let whole: Vec<u8> = streams.filter_map(|path| whole_output(path)).flatten().collect();
    let whole = String::from_utf8_lossy(&whole);
    match checks::records(if whole.is_empty() { run.printed } else { &whole }) {
        Some(records) => ReportResult::Output(records),
        None => ReportResult::Unknown,
    }
}

/// Returns an output without the lines that npm, pnpm, Yarn and Bun print before the output of a script.
fn without_banner(output: &[u8]) -> &[u8] {
    let mut rest = output.trim_ascii_start();
    for _ in 0..BANNER_LINES_MAX {
        if !BANNERS.iter().any(|start| rest.starts_with(start)) {
            break;
        }
        let end = rest.iter().position(|byte| *byte == b'\n').map_or(rest.len(), |end| end + 1);
        rest = rest[end..].trim_ascii_start();
    }
    rest
}

/// Returns all of a stored output, if it is not too long.
fn whole_output(path: &Path) -> Option<Vec<u8>> {
    let size = fs::metadata(path).ok()?.len();
    fs::read(path).ok().filter(|_| size <= OUTPUT_MAX)
}

/// Whether a failing check of the report proves that tests failed. Findings of linters have levels of their own.
pub(crate) fn is_test_report(records: &CheckRecords) -> bool {
    records.source != ReportFormat::Sarif.name()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lines_of_package_managers_before_a_report_are_skipped() {
        let tap = "TAP version 13\n> not a banner\nok 1 a\n1..1\n";
        for banner in [
            "",
            "\n> minimist@1.2.8 test\n> nyc tape 'test/*.js'\n\n",
            "yarn run v1.22.22\n$ tape test.js\n",
            "$ tape test.js\n",
            "\n> p@1.0.0 test\n> npm run unit\n\n\n> p@1.0.0 unit\n> tape test.js\n\n",
        ] {
            let output = format!("{banner}{tap}");
            assert_eq!(without_banner(output.as_bytes()), tap.as_bytes(), "{banner}");
        }
        assert_eq!(without_banner(b"> a line without an end"), b"");
        let many = "> x\n".repeat(BANNER_LINES_MAX + 1);
        assert_eq!(without_banner(many.as_bytes()), b"> x\n");
    }
}
