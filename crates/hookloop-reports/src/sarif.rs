//! Reads SARIF 2.1, the findings of linters and scanners in JSON.

use std::borrow::Cow;
use std::collections::HashMap;

use hookloop_core::checks::CheckOutcome;
use percent_encoding::percent_decode_str;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::error::ReportError;
use crate::json::{self, LooseNumber, LossyText, text_or_empty};
use crate::sink::{ReportSink, title};

/// Maximum rules, and maximum files, that findings can refer to by number.
const TABLE_MAX: usize = 100_000;

#[derive(Deserialize)]
struct SarifLog<'a> {
    #[serde(borrow)]
    runs: &'a RawValue,
}

#[derive(Deserialize)]
struct SarifRun<'a> {
    #[serde(borrow)]
    tool: Option<SarifTool<'a>>,
    #[serde(borrow)]
    artifacts: Option<&'a RawValue>,
    #[serde(borrow)]
    results: Option<&'a RawValue>,
    #[serde(borrow)]
    invocations: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct SarifTool<'a> {
    #[serde(borrow)]
    driver: Option<SarifComponent<'a>>,
    #[serde(borrow)]
    extensions: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct SarifComponent<'a> {
    #[serde(borrow)]
    rules: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SarifRule {
    id: Option<LossyText>,
    default_configuration: Option<RuleConfiguration>,
}

#[derive(Deserialize)]
struct RuleConfiguration {
    level: Option<LossyText>,
}

#[derive(Deserialize)]
struct SarifArtifact {
    location: Option<ArtifactLocation>,
}

#[derive(Deserialize)]
struct ArtifactLocation {
    uri: Option<LossyText>,
    #[serde(default)]
    index: LooseNumber,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SarifFinding<'a> {
    rule_id: Option<LossyText>,
    #[serde(default)]
    rule_index: LooseNumber,
    rule: Option<RuleReference>,
    kind: Option<LossyText>,
    level: Option<LossyText>,
    message: Option<FindingMessage>,
    #[serde(borrow)]
    locations: Option<&'a RawValue>,
    #[serde(borrow)]
    suppressions: Option<&'a RawValue>,
    baseline_state: Option<LossyText>,
}

#[derive(Deserialize)]
struct RuleReference {
    id: Option<LossyText>,
    #[serde(default)]
    index: LooseNumber,
}

#[derive(Deserialize)]
struct FindingMessage {
    text: Option<LossyText>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct FindingLocation {
    physical_location: Option<PhysicalLocation>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PhysicalLocation {
    artifact_location: Option<ArtifactLocation>,
    region: Option<FindingRegion>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct FindingRegion {
    #[serde(default)]
    start_line: LooseNumber,
}

#[derive(Deserialize)]
struct FindingSuppression {
    status: Option<LossyText>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ToolInvocation<'a> {
    execution_successful: Option<bool>,
    #[serde(borrow)]
    tool_execution_notifications: Option<&'a RawValue>,
    #[serde(borrow)]
    tool_configuration_notifications: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct ToolNotification<'a> {
    level: Option<LossyText>,
    message: Option<FindingMessage>,
    descriptor: Option<RuleReference>,
    #[serde(borrow)]
    locations: Option<&'a RawValue>,
}

/// The tables that the findings of a run refer to.
#[derive(Default)]
struct RunTables {
    rules: Vec<RuleEntry>,
    /// The place of the first rule with an id.
    by_id: HashMap<String, usize>,
    paths: Vec<String>,
}

struct RuleEntry {
    id: String,
    level: Option<String>,
}

/// The place of a finding.
#[derive(Default)]
struct FoundPlace {
    path: String,
    line: Option<u64>,
}

pub(crate) fn read(text: &str, sink: &mut ReportSink) -> Result<(), ReportError> {
    let log: SarifLog<'_> = json::document(text)?;
    json::each(text, log.runs, |run: SarifRun<'_>| read_run(text, &run, sink))?;
    Ok(())
}

fn read_run(text: &str, run: &SarifRun<'_>, sink: &mut ReportSink) -> Result<(), ReportError> {
    let tables = RunTables::read(text, run)?;
    match run.results {
        Some(results) => {
            json::each(text, results, |finding: SarifFinding<'_>| {
                add_finding(text, &finding, &tables, sink)
            })?;
        }
        // Only a run that did not happen has no list of results.
        None => sink.set_broken(),
    }
    if let Some(invocations) = run.invocations {
        json::each(text, invocations, |invocation: ToolInvocation<'_>| {
            add_invocation(text, &invocation, &tables, sink)
        })?;
    }
    Ok(())
}

fn add_finding(
    text: &str,
    finding: &SarifFinding<'_>,
    tables: &RunTables,
    sink: &mut ReportSink,
) -> Result<(), ReportError> {
    let rule = tables.rule(finding);
    let outcome = outcome(text, finding, rule)?;
    let own_id = finding.rule_id.as_ref().or(finding.rule.as_ref().and_then(|r| r.id.as_ref()));
    let rule_id = own_id.map(|id| id.0.as_str()).or(rule.map(|rule| rule.id.as_str()));
    let place = tables.place(text, finding.locations)?;
    add_at(rule_id.unwrap_or_default(), &place, outcome, &finding.message, sink);
    Ok(())
}

/// Adds a check named by its rule and its file. The line is only in the cause.
fn add_at(
    rule_id: &str,
    place: &FoundPlace,
    outcome: CheckOutcome,
    message: &Option<FindingMessage>,
    sink: &mut ReportSink,
) {
    let message = message.as_ref().map_or("", |message| text_or_empty(&message.text));
    let path = sink.relative(&place.path).into_owned();
    let cause = match place.line {
        Some(line) => format!("{path}:{line}: {message}"),
        None => message.to_owned(),
    };
    let parts = [rule_id, &path].into_iter().filter(|part| !part.is_empty());
    sink.add(&parts.collect::<Vec<_>>().join(" "), outcome, None, &cause);
}

/// Returns the outcome of a finding. An unknown kind or level is a failure.
fn outcome(
    text: &str,
    finding: &SarifFinding<'_>,
    rule: Option<&RuleEntry>,
) -> Result<CheckOutcome, ReportError> {
    match finding.kind.as_ref().map(|kind| kind.0.as_str()) {
        Some("pass") => return Ok(CheckOutcome::Passed),
        Some("open" | "informational" | "notApplicable" | "review") => {
            return Ok(CheckOutcome::Skipped);
        }
        _ => {}
    }
    if text_or_empty(&finding.baseline_state) == "absent" || is_suppressed(text, finding)? {
        return Ok(CheckOutcome::Skipped);
    }
    let own_level = finding.level.as_ref().map(|level| level.0.as_str());
    let level = own_level.or_else(|| rule.and_then(|rule| rule.level.as_deref()));
    Ok(match level.unwrap_or("warning") {
        "warning" | "note" | "none" => CheckOutcome::Skipped,
        _ => CheckOutcome::Failed,
    })
}

/// Whether a finding has suppressions, and none of them is rejected or under review.
fn is_suppressed(text: &str, finding: &SarifFinding<'_>) -> Result<bool, ReportError> {
    let Some(suppressions) = finding.suppressions else { return Ok(false) };
    let mut is_accepted = true;
    let number = json::each(text, suppressions, |suppression: FindingSuppression| {
        is_accepted &= matches!(text_or_empty(&suppression.status), "" | "accepted");
        Ok(())
    })?;
    Ok(number > 0 && is_accepted)
}

fn add_invocation(
    text: &str,
    invocation: &ToolInvocation<'_>,
    tables: &RunTables,
    sink: &mut ReportSink,
) -> Result<(), ReportError> {
    if invocation.execution_successful == Some(false) {
        sink.set_broken();
    }
    let notifications =
        [invocation.tool_execution_notifications, invocation.tool_configuration_notifications];
    for list in notifications.into_iter().flatten() {
        json::each(text, list, |notification: ToolNotification<'_>| {
            if matches!(text_or_empty(&notification.level), "" | "warning" | "note" | "none") {
                return Ok(());
            }
            let descriptor = notification.descriptor.as_ref().and_then(|found| found.id.as_ref());
            let id = descriptor.map_or("notification", |id| &id.0);
            let place = tables.place(text, notification.locations)?;
            add_at(id, &place, CheckOutcome::Failed, &notification.message, sink);
            sink.set_broken();
            Ok(())
        })?;
    }
    Ok(())
}

impl RunTables {
    fn read(text: &str, run: &SarifRun<'_>) -> Result<RunTables, ReportError> {
        let mut tables = RunTables::default();
        if let Some(tool) = &run.tool {
            if let Some(driver) = &tool.driver {
                tables.add_rules(text, driver)?;
            }
            // Numbers of rules are those of the driver. Rules of extensions are found by id.
            if let Some(extensions) = tool.extensions {
                json::each(text, extensions, |extension: SarifComponent<'_>| {
                    tables.add_rules(text, &extension)
                })?;
            }
        }
        if let Some(artifacts) = run.artifacts {
            json::each(text, artifacts, |artifact: SarifArtifact| {
                check_room("files", tables.paths.len())?;
                let uri = artifact.location.and_then(|location| location.uri).unwrap_or_default();
                tables.paths.push(title(&decoded(&uri.0)).to_owned());
                Ok(())
            })?;
        }
        Ok(tables)
    }

    fn add_rules(&mut self, text: &str, component: &SarifComponent<'_>) -> Result<(), ReportError> {
        let Some(rules) = component.rules else { return Ok(()) };
        json::each(text, rules, |rule: SarifRule| {
            check_room("rules", self.rules.len())?;
            let id = rule.id.unwrap_or_default().0;
            let level = rule.default_configuration.and_then(|configuration| configuration.level);
            self.by_id.entry(id.clone()).or_insert(self.rules.len());
            let id = title(&id).to_owned();
            self.rules.push(RuleEntry { id, level: level.map(|level| level.0) });
            Ok(())
        })?;
        Ok(())
    }

    /// Returns the rule of a finding: by its id, which may have parts after the rule's id, or by its number.
    fn rule(&self, finding: &SarifFinding<'_>) -> Option<&RuleEntry> {
        let reference = finding.rule.as_ref();
        let id = finding.rule_id.as_ref().or(reference.and_then(|found| found.id.as_ref()));
        if let Some(LossyText(id)) = id {
            let first_part = id.split('/').next().unwrap_or_default();
            let place = self.by_id.get(id).or_else(|| self.by_id.get(first_part));
            if let Some(place) = place {
                return self.rules.get(*place);
            }
        }
        let number = finding.rule_index.0.or(reference.and_then(|found| found.index.0))?;
        self.rules.get(index(number)?)
    }

    /// Returns the first place of a list of locations.
    fn place(&self, text: &str, locations: Option<&RawValue>) -> Result<FoundPlace, ReportError> {
        let mut first = None;
        let Some(locations) = locations else { return Ok(FoundPlace::default()) };
        json::each(text, locations, |location: FindingLocation| {
            first.get_or_insert(location);
            Ok(())
        })?;
        let physical = first.and_then(|location| location.physical_location);
        let Some(physical) = physical else { return Ok(FoundPlace::default()) };
        let line = physical.region.and_then(|region| region.start_line.0);
        let path = physical.artifact_location.map(|artifact| match artifact.uri {
            Some(uri) => decoded(&uri.0).into_owned(),
            None => {
                let known = artifact.index.0.and_then(index).and_then(|at| self.paths.get(at));
                known.cloned().unwrap_or_default()
            }
        });
        let line = line.and_then(index).map(|line| line as u64);
        Ok(FoundPlace { path: path.unwrap_or_default(), line })
    }
}

fn check_room(things: &'static str, number: usize) -> Result<(), ReportError> {
    if number < TABLE_MAX {
        return Ok(());
    }
    Err(ReportError::TooMany { part: "a run of the report", things, limit: TABLE_MAX })
}

/// Returns a number as an index, or `None` for -1 and fractions.
fn index(number: f64) -> Option<usize> {
    (number >= 0.0 && number.fract() == 0.0).then_some(number as usize)
}

/// Returns a URI without percent encoding.
fn decoded(uri: &str) -> Cow<'_, str> {
    percent_decode_str(uri).decode_utf8_lossy()
}

#[cfg(test)]
mod tests;
