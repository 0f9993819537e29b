use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

use nkeys::KeyPair;
use serde_json::json;

use crate::cli::context::CommandContext;
use crate::error::{CliError, CliResult};

/// Create a key that identifies a user to a NATS server
///
/// Writes the secret seed to a file that only you can read, and prints the public key for the server's configuration.
/// The seed never leaves this machine: a server gets only signatures.
#[derive(clap::Args)]
pub(crate) struct NatsKeyArgs {
    /// New file for the seed
    file: PathBuf,
}

impl NatsKeyArgs {
    pub(crate) fn run(self, context: &mut CommandContext) -> CliResult {
        let failed = |reason: &dyn std::fmt::Display| {
            CliError::system(format!("{}: {reason}", self.file.display()))
        };
        let key = KeyPair::new_user();
        let seed = key.seed().map_err(|error| failed(&error))?;
        let mut file = std::fs::File::options()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&self.file)
            .map_err(|error| failed(&error))?;
        writeln!(file, "{seed}").map_err(|error| failed(&error))?;
        let out = &mut context.out;
        let public = key.public_key();
        if out.json {
            out.json(&json!({ "public_key": public, "file": self.file }))
        } else {
            out.line(public)
        }
    }
}
