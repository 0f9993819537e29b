//! Checks of a project's log, in a file on this machine or on servers.

use std::path::Path;
use std::time::Duration;

use hookloop_config::paths::ProjectPaths;
use hookloop_engine::error::EngineError;
use hookloop_engine::log_location::loss_of_emptied_log;
use hookloop_engine::project::Project;
use hookloop_store::checkup::{FileCheckup, FileIntegrity, look};
use hookloop_store::jetstream::ServerStanding;
use hookloop_store::sqlite::{LogLoss, SCHEMA};

use super::{Finding, FindingGroup, Remedy};

/// Time limit of the check of a file. `hookloop verify` has none.
const LOOK_WITHIN: Duration = Duration::from_millis(800);

/// Checks the file of a project's log. A missing file is fine: the first command creates it.
pub fn examine_log(place: &ProjectPaths) -> Vec<Finding> {
    let (library, file) =
        (FindingGroup::Store.ok("sqlite", hookloop_store::checkup::library()), &place.database());
    if let Some(loss) = loss_of_emptied_log(place) {
        return vec![library, lost(&loss)];
    }
    if !file.exists() {
        return vec![library, FindingGroup::Store.ok("log", "nothing is in it yet")];
    }
    let checkup = match look(file, LOOK_WITHIN) {
        Ok(checkup) => checkup,
        Err(error) => {
            return vec![library, damaged(file, &error.to_string())];
        }
    };
    vec![library, of_file(file, &checkup)]
}

fn of_file(file: &Path, checkup: &FileCheckup) -> Finding {
    if checkup.schema > SCHEMA {
        let message = format!(
            "its tables have version {}; this hookloop knows up to {SCHEMA}",
            checkup.schema
        );
        let remedy = Remedy::Do(
            "update hookloop: an older one can't read what a newer one wrote".to_owned(),
        );
        return FindingGroup::Store.error("log", message).with_remedy(remedy);
    }
    if checkup.is_busy {
        let message = "another process has been writing to it for a while; commands wait for it";
        let remedy = Remedy::Do(format!("fuser {} says who", file.display()));
        return FindingGroup::Store.warning("log", message).with_remedy(remedy);
    }
    if let Some(loss) = &checkup.loss {
        return lost(loss);
    }
    let size = checkup.bytes / (1024 * 1024);
    match &checkup.wholeness {
        FileIntegrity::Damaged(what) => damaged(file, what),
        FileIntegrity::Whole => {
            FindingGroup::Store.ok("log", format!("whole, version {}, {size} MB", checkup.schema))
        }
        FileIntegrity::Unknown => {
            let message = format!(
                "version {}, {size} MB; hookloop verify looks at all of it",
                checkup.schema
            );
            FindingGroup::Store.ok("log", message)
        }
    }
}

fn damaged(file: &Path, what: &str) -> Finding {
    let message = format!("{} is damaged: {what}", file.display());
    FindingGroup::Store.error("log", message).with_remedy(Remedy::Do(restore_hint(file)))
}

fn lost(loss: &LogLoss) -> Finding {
    let remedy = Remedy::Do(format!(
        "{}, or accept the loss: `hookloop rebuild --accept-loss`",
        restore_hint(&loss.path)
    ));
    FindingGroup::Store.error("log", loss.to_string()).with_remedy(remedy)
}

/// Returns the hint for a log whose file is damaged or lost.
pub fn restore_hint(file: &Path) -> String {
    let directory = file.parent().unwrap_or(file).display();
    format!("restore {directory} from a backup (docs/log.md, \"When events are missing\")")
}

/// Reports the state of the servers that store a log.
pub fn examine_servers(urls: &str, standing: &ServerStanding) -> Vec<Finding> {
    let ServerStanding { version, copies, accepted, lets_anyone_in, can_be_purged, .. } = standing;
    let mut findings = vec![FindingGroup::Store.ok("servers", format!("NATS {version} at {urls}"))];
    let copies_in_words = match copies {
        1 => "one copy: what this one server loses is lost".to_owned(),
        n => format!("{n} copies"),
    };
    findings.push(FindingGroup::Store.ok("copies", copies_in_words));
    findings.push(match accepted.as_slice() {
        [] => FindingGroup::Store.ok("durability", "it syncs before it acknowledges"),
        risks => {
            let message = format!("taken by `durability: unsafe`: {}", risks.join("; "));
            let remedy = Remedy::Do("docs/nats.md says how servers are set up".to_owned());
            FindingGroup::Store.warning("durability", message).with_remedy(remedy)
        }
    });
    if *lets_anyone_in {
        let message = "the server lets in anyone who reaches it, to read, forge and delete events";
        let remedy = Remedy::Do(
            "`hookloop nats down && hookloop nats up` gives your own server a token; docs/nats.md has the others"
                .to_owned(),
        );
        findings.push(FindingGroup::Store.warning("access", message).with_remedy(remedy));
    }
    if *can_be_purged {
        let message = "the stream of this log can be purged, and this user may not change that";
        let remedy = Remedy::Do(
            "let someone who may change streams run `hookloop status` here once".to_owned(),
        );
        findings.push(FindingGroup::Store.warning("purge", message).with_remedy(remedy));
    }
    findings
}

/// Reports foreign and lost events of an open log.
pub fn examine_events(project: &Project) -> Result<Vec<Finding>, EngineError> {
    let mut findings = Vec::new();
    let foreign = project.foreign_messages()?;
    if let Some(first) = foreign.first() {
        let message = format!(
            "{} foreign messages are in the log, and are skipped; the first is message {} on {}: {}",
            foreign.len(),
            first.seq,
            first.subject,
            first.reason
        );
        let remedy = "hookloop verify --accept-foreign".to_owned();
        findings.push(FindingGroup::Store.warning("messages", message).typed(remedy));
    }
    if let Some(last) = project.store().replaced()? {
        let message = format!(
            "the stream of this log was deleted and created again: the events up to {last} that were acknowledged before are gone"
        );
        let remedy = "hookloop rebuild --accept-loss".to_owned();
        findings.push(FindingGroup::Store.warning("events", message).typed(remedy));
    }
    Ok(findings)
}
