//! Why a step of a delivery, or a task's worktree, failed.

/// Why something about a task's place did not work out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// Something that the agent can mend, told so.
    Block {
        /// The reason in one line, for people.
        why: String,
        /// The instruction.
        prompt: String,
        /// What it is about, as data: conflicts, or the words of reviewers.
        details: String,
    },
    /// It may another time.
    Retry {
        why: String,
    },
    NeedsHuman {
        why: String,
    },
}

impl Trouble {
    /// A failure that the agent can correct. The first line of the instruction is the reason.
    pub(crate) fn block(prompt: String) -> Trouble {
        let why = prompt.lines().next().unwrap_or_default().to_owned();
        Trouble::Block { why, prompt, details: String::new() }
    }

    pub(crate) fn reason(&self) -> &str {
        match self {
            Trouble::Block { prompt: reason, .. }
            | Trouble::Retry { why: reason }
            | Trouble::NeedsHuman { why: reason } => reason,
        }
    }
}

/// A task's work, all of it in commits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wrapped {
    pub branch: String,
    pub head: String,
    /// The branch that it is for.
    pub base: String,
    /// How many the base does not have.
    pub commits: u32,
}
