//! Errors of running a job.

use std::path::PathBuf;

use crate::output::JobOutputs;
use crate::sandbox::ConfinementError;

/// A job that did not run, or whose result is unknown.
#[derive(Debug, thiserror::Error)]
pub enum ProcessError {
    #[error("`{}` could not be started: {why}", program.display())]
    NotStarted { program: PathBuf, errno: i32, why: WhyNotStarted },
    #[error("it was not run, because its sandbox could not be set up: {why}")]
    NotConfined { why: ConfinementError },
    /// The job may have run to its end or not.
    #[error("the keeper of a hook's processes ended before the hook did")]
    KeeperLost { output: Box<JobOutputs> },
    #[error("{doing}")]
    Io { doing: &'static str, source: std::io::Error },
}

/// The reason why a program did not start, precise enough to fix it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WhyNotStarted {
    #[error("no program is named")]
    Unnamed,
    #[error("there is no such file")]
    NotFound,
    #[error("there is no program of that name in PATH ({path})")]
    NotInPath { path: String },
    #[error("the file is not executable (chmod +x makes it so)")]
    NotExecutable,
    #[error("its first line asks for `{interpreter}`, which can't be run")]
    BadInterpreter { interpreter: String },
    #[error("the file is neither a program nor a script that begins with #!")]
    NotAProgram,
    #[error("its directory `{}` does not exist or can't be entered", .0.display())]
    BadDirectory(PathBuf),
    #[error("an argument or a variable holds a zero byte, which no process can be given")]
    ZeroByte,
    #[error("arguments and environment are larger than the system takes")]
    TooLarge,
    #[error("{0}")]
    Other(String),
}

impl ProcessError {
    pub(crate) fn io(doing: &'static str) -> impl Fn(rustix::io::Errno) -> ProcessError {
        move |errno| ProcessError::Io { doing, source: errno.into() }
    }
}
