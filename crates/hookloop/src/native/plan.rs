//! Plans an installation or removal, file by file, before anything changes.

use std::path::{Path, PathBuf};

use super::agent::{AgentHomes, InstallScope, NativeAgent};
use super::file::{self, FileError};
use super::jsonc::JsoncFault;
use super::record::{InstallRecord, InstallRecords, digest};
use super::settings::{self, EditedSettings, RemainingText};
use super::skill;
use crate::error::CliError;

#[derive(Debug, thiserror::Error)]
pub(crate) enum PlanError {
    #[error(transparent)]
    File(#[from] FileError),
    #[error("{}: {fault}", path.display())]
    Fault { path: PathBuf, fault: JsoncFault },
    #[error("{} is not UTF-8", .0.display())]
    NoText(PathBuf),
    #[error("HOME is not set")]
    NoHome,
    #[error("{} leads out of the project, to {}", link.display(), target.display())]
    LeadsOut { link: PathBuf, target: PathBuf },
}

/// Where an agent's files are.
#[derive(Debug)]
pub(crate) struct SettingsScope {
    pub(crate) agent: NativeAgent,
    pub(crate) scope: InstallScope,
    directory: PathBuf,
    /// Nothing outside of it is touched.
    bounds: Option<PathBuf>,
}

impl SettingsScope {
    pub(crate) fn of_project(agent: NativeAgent, root: &Path) -> SettingsScope {
        let directory = agent.project_directory(root);
        SettingsScope {
            agent,
            scope: InstallScope::Project,
            directory,
            bounds: Some(root.to_owned()),
        }
    }

    pub(crate) fn of_user(
        agent: NativeAgent,
        homes: &AgentHomes,
    ) -> Result<SettingsScope, PlanError> {
        let directory = agent.user_directory(homes).ok_or(PlanError::NoHome)?;
        Ok(SettingsScope { agent, scope: InstallScope::User, directory, bounds: None })
    }

    pub(crate) fn settings(&self) -> PathBuf {
        self.directory.join(self.agent.settings_file())
    }

    fn skill(&self) -> PathBuf {
        self.directory.join(skill::PATH)
    }

    /// A file as it is. A repository's links are followed inside of it only.
    fn look(&self, path: &Path) -> Result<FoundFile, PlanError> {
        let target = file::target(path)?;
        if let Some(bounds) = &self.bounds {
            let nearest = target.ancestors().find_map(|one| one.canonicalize().ok());
            if !nearest.is_some_and(|nearest| nearest.starts_with(bounds)) {
                return Err(PlanError::LeadsOut { link: path.to_owned(), target });
            }
        }
        let bytes = file::read(&target)?;
        Ok(FoundFile { target, bytes })
    }

    /// The text of the settings; none if there are none.
    pub(crate) fn settings_text(&self) -> Result<Option<String>, PlanError> {
        self.look(&self.settings())?.text()
    }
}

struct FoundFile {
    target: PathBuf,
    bytes: Option<Vec<u8>>,
}

impl FoundFile {
    fn text(&self) -> Result<Option<String>, PlanError> {
        let no_text = |_| PlanError::NoText(self.target.clone());
        self.bytes.clone().map(String::from_utf8).transpose().map_err(no_text)
    }

    fn fault(&self) -> impl FnOnce(JsoncFault) -> PlanError {
        let path = self.target.clone();
        |fault| PlanError::Fault { path, fault }
    }
}

/// The planned change of a file.
#[derive(Debug)]
pub(crate) struct PlannedChange {
    pub(crate) path: PathBuf,
    before: Option<Vec<u8>>,
    after: Option<Vec<u8>>,
    inserted: Vec<std::ops::Range<usize>>,
    created: bool,
}

impl PlannedChange {
    pub(crate) fn old_text(&self) -> String {
        text_of(self.before.as_deref())
    }

    pub(crate) fn new_text(&self) -> String {
        text_of(self.after.as_deref())
    }

    pub(crate) fn removes(&self) -> bool {
        self.after.is_none()
    }
}

fn text_of(bytes: Option<&[u8]>) -> String {
    String::from_utf8_lossy(bytes.unwrap_or_default()).into_owned()
}

/// The planned changes, and the entries that hookloop must not touch.
#[derive(Debug, Default)]
pub(crate) struct InstallPlan {
    pub(crate) changes: Vec<PlannedChange>,
    pub(crate) left: Vec<PathBuf>,
}

/// Plans the installation into an agent.
pub(crate) fn install(
    ground: &SettingsScope,
    program: &str,
    records: &InstallRecords,
) -> Result<InstallPlan, PlanError> {
    let mut plan = InstallPlan::default();
    plan.changes.extend(settings_in(ground, program)?);
    let found = ground.look(&ground.skill())?;
    let new = skill::TEXT.as_bytes().to_vec();
    match &found.bytes {
        Some(bytes) if *bytes == new => {}
        Some(bytes) if records.of(&found.target, bytes).is_none() => plan.left.push(found.target),
        _ => plan.changes.push(PlannedChange {
            inserted: std::iter::once(0..new.len()).collect(),
            created: true,
            path: found.target,
            before: found.bytes,
            after: Some(new),
        }),
    }
    Ok(plan)
}

fn settings_in(ground: &SettingsScope, program: &str) -> Result<Option<PlannedChange>, PlanError> {
    let found = ground.look(&ground.settings())?;
    let text = found.text()?;
    let entries = ground.agent.entries(program);
    // Entries of another version, or for a program elsewhere, make room.
    let base = match &text {
        Some(text) if settings::is_current(text, &entries).map_err(found.fault())? => {
            return Ok(None);
        }
        Some(text) => match settings::uninstall(text).map_err(found.fault())? {
            RemainingText::Text(text) => Some(text),
            RemainingText::Nothing => None,
        },
        None => None,
    };
    let EditedSettings { text, inserted } =
        settings::install(base.as_deref(), &entries).map_err(found.fault())?;
    Ok(Some(PlannedChange {
        path: found.target,
        before: found.bytes,
        after: Some(text.into_bytes()),
        inserted,
        created: base.is_none(),
    }))
}

/// Plans the removal from an agent.
pub(crate) fn uninstall(
    ground: &SettingsScope,
    records: &InstallRecords,
) -> Result<InstallPlan, PlanError> {
    let mut plan = InstallPlan::default();
    // Last what the others are below of: a directory that was made for it goes when it is empty.
    let found = ground.look(&ground.skill())?;
    match &found.bytes {
        Some(bytes)
            if bytes == skill::TEXT.as_bytes() || records.of(&found.target, bytes).is_some() =>
        {
            plan.changes.extend(removal(found, None));
        }
        Some(_) => plan.left.push(found.target),
        None => {}
    }
    let found = ground.look(&ground.settings())?;
    if let Some(text) = found.text()? {
        let rest = match records.of(&found.target, text.as_bytes()) {
            Some(record) if record.created => Some(RemainingText::Nothing),
            Some(record) => settings::without(&text, &record.inserted).map(RemainingText::Text),
            None => None,
        };
        let rest = match rest {
            Some(rest) => rest,
            None => settings::uninstall(&text).map_err(found.fault())?,
        };
        let after = match rest {
            RemainingText::Text(text) => Some(text.into_bytes()),
            RemainingText::Nothing => None,
        };
        plan.changes.extend(removal(found, after));
    }
    Ok(plan)
}

fn removal(found: FoundFile, after: Option<Vec<u8>>) -> Option<PlannedChange> {
    let FoundFile { target: path, bytes: before } = found;
    let inserted = Vec::new();
    (before != after).then_some(PlannedChange { path, before, after, inserted, created: false })
}

/// Performs the plan, and records it.
pub(crate) fn perform(
    plan: &InstallPlan,
    records: &mut InstallRecords,
    state_home: &Path,
) -> Result<(), PlanError> {
    for change in &plan.changes {
        let made = file::replace(&change.path, change.before.as_deref(), change.after.as_deref())?;
        match &change.after {
            Some(after) if !change.inserted.is_empty() => records.put(InstallRecord {
                path: change.path.clone(),
                digest: digest(after),
                inserted: change.inserted.clone(),
                created: change.created,
                directories: made,
            }),
            _ => tidy(change, records),
        }
        records.store(state_home)?;
    }
    Ok(())
}

/// Removes the directories that were made for a file, and forgets it.
fn tidy(change: &PlannedChange, records: &mut InstallRecords) {
    let mut made = records.directories(&change.path);
    // This one is ours by its name.
    let of_skill = change.path.parent().filter(|_| change.path.ends_with(skill::PATH));
    if let Some(directory) = of_skill.filter(|directory| !made.iter().any(|made| made == directory))
    {
        made.push(directory.to_owned());
    }
    file::remove_empty(&made);
    records.forget(&change.path);
}

impl From<PlanError> for CliError {
    fn from(error: PlanError) -> CliError {
        let message = error.to_string();
        match error {
            PlanError::Fault { path, fault } => CliError::usage(message).advice(format!(
                "edit {}, line {}",
                path.display(),
                fault.line
            )),
            PlanError::NoText(_) => CliError::usage(message),
            PlanError::NoHome => CliError::usage(message).hint("export HOME=/home/you"),
            PlanError::LeadsOut { .. } => {
                CliError::refused(message).advice("add `--user`, or put a file there")
            }
            PlanError::File(error) => error.into(),
        }
    }
}
