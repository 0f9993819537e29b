//! The template of a session's prompts: a file of the project, or the built-in template.

use std::path::PathBuf;

use hookloop_git::files::read_text;
use hookloop_hooks::runner::HookRunner;

use super::prompt;
use crate::project::Project;

/// The project's `prompt_template` cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("the prompt template can't be read: {}: {why}", path.display())]
pub struct PromptTemplateError {
    path: PathBuf,
    why: String,
}

/// Returns the template of the project's own directory, or the built-in one.
///
/// The file in a worktree does not count: the agent can change it there.
pub fn read_template(
    project: &Project,
    runner: &HookRunner,
) -> Result<String, PromptTemplateError> {
    let Some(path) = &project.rules().session.prompt_template else {
        return Ok(prompt::TEMPLATE.to_owned());
    };
    let path = runner.home().join(path);
    read_text(&path, prompt::TEMPLATE_MAX).map_err(|why| PromptTemplateError { path, why })
}
