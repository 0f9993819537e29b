//! A project, a model and an agent, isolated from the user's own configuration.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use hookloop_testbed::model::{Call, Input, Model, Turn};
use hookloop_testkit::{SessionOutput, TestProject, eventually};
use serde_json::{Value, json};

use crate::support::project_with;

/// No agent takes longer with a scripted model, even on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// The exit code of complete work that no gate has proven.
pub(crate) const UNPROVEN: i32 = 6;

/// A configuration whose gate passes if the answer is 42.
pub(crate) const GATED: &str = "version: 1
hooks:
  stop:
    - name: answer
      command: grep -qx 42 answer.txt || { echo 'the answer is wrong' >&2; exit 2; }
      timeout: 10s
";

/// An agent of the contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Who {
    Claude,
    Codex,
    Opencode,
    Gemini,
    CodexAcp,
    ClaudeAcp,
    /// An agent that hookloop does not know: docs/agents.md adds it.
    Qwen,
}

impl Who {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Who::Claude => "claude",
            Who::Codex => "codex",
            Who::Opencode => "opencode",
            Who::Gemini => "gemini",
            Who::CodexAcp => "codex-acp",
            Who::ClaudeAcp => "claude-agent-acp",
            Who::Qwen => "qwen",
        }
    }

    /// Returns a time limit within which the agent begins to work, even with three others on two
    /// cores.
    pub(crate) fn turn_limit(self) -> &'static str {
        match self {
            // opencode takes 20 seconds of processor time to start.
            Who::Opencode => "90s",
            _ => "30s",
        }
    }

    /// Returns a call of the agent's own tool for writing a file.
    pub(crate) fn write(self, path: &Path, text: &str) -> Call {
        let whole = path.display().to_string();
        match self {
            Who::Claude | Who::ClaudeAcp => {
                call("Write", json!({ "file_path": whole, "content": text }))
            }
            Who::Opencode => call("write", json!({ "filePath": whole, "content": text })),
            Who::Gemini | Who::Qwen => {
                call("write_file", json!({ "file_path": whole, "content": text }))
            }
            Who::Codex | Who::CodexAcp => {
                let lines: String = text.lines().map(|line| format!("+{line}\n")).collect();
                let patch =
                    format!("*** Begin Patch\n*** Add File: {whole}\n{lines}*** End Patch\n");
                Call { tool: "apply_patch".to_owned(), input: Input::Text(patch) }
            }
        }
    }

    /// Returns a call of the agent's own tool for running a command.
    pub(crate) fn run(self, line: &str) -> Call {
        match self {
            Who::Claude | Who::ClaudeAcp => {
                call("Bash", json!({ "command": line, "description": "run it" }))
            }
            Who::Opencode => call("bash", json!({ "command": line, "description": "run it" })),
            Who::Gemini => call("run_shell_command", json!({ "command": line })),
            Who::Qwen => {
                call("run_shell_command", json!({ "command": line, "is_background": false }))
            }
            Who::Codex | Who::CodexAcp => call("exec_command", json!({ "cmd": line })),
        }
    }
}

fn call(tool: &str, input: Value) -> Call {
    Call { tool: tool.to_owned(), input: Input::Json(input) }
}

/// Returns the directory in which the agents are installed.
pub(crate) fn installed() -> PathBuf {
    let home = std::env::var_os("HOME").unwrap_or_default();
    let usual = || PathBuf::from(home).join(".cache/hookloop-agents");
    std::env::var_os("HOOKLOOP_AGENTS").map_or_else(usual, PathBuf::from)
}

/// A [`TestProject`] with a model and the configuration of an agent.
pub(crate) struct AgentProject {
    pub(crate) who: Who,
    pub(crate) model: Model,
    pub(crate) project: TestProject,
    /// Set in the environment of every process that is started here.
    mark: String,
}

impl AgentProject {
    /// Returns a project without gates, for tests of the agent alone.
    pub(crate) fn new(who: Who, script: impl IntoIterator<Item = Turn>) -> AgentProject {
        AgentProject::with("version: 1\n", who, script)
    }

    pub(crate) fn with(
        config: &str,
        who: Who,
        script: impl IntoIterator<Item = Turn>,
    ) -> AgentProject {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let program = installed().join("node_modules/.bin").join(who.name());
        assert!(
            program.exists(),
            "{} is not there; CONTRIBUTING.md says how to install the agents",
            program.display()
        );
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let mark = format!("stage-{}-{number}", std::process::id());
        let (model, project) = (Model::start(script), project_with(config));
        let mut stage = AgentProject { who, model, project, mark };
        for name in ["tmp", "codex", "claude", "home/.gemini"] {
            fs::create_dir_all(stage.project.beside(name)).unwrap();
        }
        stage.set_variables();
        stage.configure_agents();
        stage.project.create_repository();
        stage.project.trust();
        stage
    }

    /// Writes the configuration of each agent, so that it sends requests to the scripted model.
    fn configure_agents(&self) {
        let url = self.model.url();
        let codex = format!(
            "model = \"gpt-5.5\"\nmodel_provider = \"scripted\"\nanalytics.enabled = false\n\
             features = {{ plugins = false, apps = false }}\n[model_providers.scripted]\n\
             name = \"scripted\"\nbase_url = \"{url}/v1\"\nwire_api = \"responses\"\n\
             request_max_retries = 0\nstream_max_retries = 0\n"
        );
        fs::write(self.directory().join("codex/config.toml"), codex).unwrap();
        let gemini = json!({
            "security": { "auth": { "selectedType": "gemini-api-key" },
                "folderTrust": { "enabled": false } },
            "telemetry": { "enabled": false }, "privacy": { "usageStatisticsEnabled": false },
            "general": { "enableAutoUpdate": false, "enableAutoUpdateNotification": false,
                "maxAttempts": 1 },
            "model": { "name": "gemini-2.5-pro" },
        });
        fs::write(self.directory().join("home/.gemini/settings.json"), gemini.to_string()).unwrap();
        if self.who == Who::Qwen {
            // The configuration from the document, with the model's address.
            let document = crate::documents::block("docs/agents.md", "user");
            self.configure(&document.replace("https://example.invalid", &url));
        }
    }

    /// Writes the user's own configuration of hookloop.
    pub(crate) fn configure(&self, text: &str) {
        let own = self.directory().join("CONFIG/hookloop");
        fs::create_dir_all(&own).unwrap();
        fs::write(own.join("config.yaml"), text).unwrap();
    }

    /// Returns the directory that holds the project and the home.
    pub(crate) fn directory(&self) -> PathBuf {
        self.project.root().parent().unwrap().to_owned()
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.project.root().join(name)
    }

    /// Returns a turn of the model in which the agent writes a file.
    pub(crate) fn writes(&self, name: &str, text: &str) -> Turn {
        Turn::call("I write the file.", self.who.write(&self.path(name), text))
    }

    /// Sets the environment of the program and of the agents that it starts.
    fn set_variables(&mut self) {
        let path = std::env::var("PATH").unwrap();
        let bin = installed().join("node_modules/.bin");
        let (root, url) = (self.directory(), self.model.url());
        let opencode = self.opencode().to_string();
        let mark = self.mark.clone();
        let mut set = |name: &str, value: &dyn AsRef<OsStr>| {
            self.project.set_variable(name, value.as_ref());
        };
        set("PATH", &format!("{}:{path}", bin.display()));
        set("STAGE", &mark);
        set("TMPDIR", &root.join("tmp"));
        set("CODEX_HOME", &root.join("codex"));
        set("CLAUDE_CONFIG_DIR", &root.join("claude"));
        set("ANTHROPIC_BASE_URL", &url);
        set("ANTHROPIC_API_KEY", &"key-of-nobody");
        set("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", &"1");
        set("CLAUDE_CODE_MAX_RETRIES", &"0");
        set("CLAUDE_CODE_ENABLE_PROMPT_SUGGESTION", &"false");
        // Without this variable Claude Code refuses full permissions to root.
        set("IS_SANDBOX", &"1");
        set("GEMINI_API_KEY", &"key-of-nobody");
        set("GOOGLE_GEMINI_BASE_URL", &url);
        set("GEMINI_CLI_HOME", &root.join("home"));
        set("GEMINI_CLI_TRUST_WORKSPACE", &"true");
        set("GEMINI_CLI_NO_RELAUNCH", &"true");
        set("GEMINI_TELEMETRY_ENABLED", &"false");
        for name in ["CONFIG", "DATA", "CACHE", "STATE"] {
            // Directories that opencode writes to; hookloop's own state is elsewhere for that
            // reason.
            set(&format!("XDG_{name}_HOME"), &root.join(name));
        }
        for name in ["AUTOUPDATE", "MODELS_FETCH", "LSP_DOWNLOAD", "DEFAULT_PLUGINS"] {
            set(&format!("OPENCODE_DISABLE_{name}"), &"1");
        }
        set("OPENAI_API_KEY", &"key-of-nobody");
        set("OPENCODE_CONFIG_CONTENT", &opencode);
    }

    /// Returns the program with `--json`, ready to start.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        self.project.json_command(args)
    }

    fn opencode(&self) -> Value {
        let models = json!({ "scripted": { "name": "scripted", "tool_call": true,
            "limit": { "context": 100_000, "output": 8_000 } } });
        let options = json!({ "baseURL": format!("{}/v1", self.model.url()), "apiKey": "x" });
        let provider = json!({ "npm": "@ai-sdk/openai-compatible", "name": "scripted",
            "options": options, "models": models });
        json!({ "autoupdate": false, "share": "disabled", "snapshot": false,
            "model": "scripted/scripted", "small_model": "scripted/scripted",
            "enabled_providers": ["scripted"],
            "provider": { "scripted": provider } })
    }

    fn arguments<'a>(&self, args: &[&'a str]) -> Vec<&'a str> {
        let mut all =
            vec!["run", "--agent", self.who.name(), "--max-errors", "1", "--no-changes-ok"];
        if !args.contains(&"--stop-when") {
            all.extend(["--stop-when", "turn"]);
        }
        all.extend(args);
        all
    }

    /// Runs a session of one turn, unless `args` contain another limit.
    pub(crate) fn run(&self, args: &[&str]) -> SessionOutput {
        SessionOutput::from(self.command(&self.arguments(args)).output().unwrap())
    }

    /// Starts the same session, without waiting for its end.
    pub(crate) fn start(&self, args: &[&str]) -> Child {
        self.command(&self.arguments(args)).spawn().unwrap()
    }

    pub(crate) fn hookloop(&self, args: &[&str]) -> SessionOutput {
        SessionOutput::from(self.command(args).output().unwrap())
    }

    /// Runs the agent itself, with these arguments.
    pub(crate) fn by_hand(&self, args: &[&str]) -> Output {
        let program = installed().join("node_modules/.bin").join(self.who.name());
        self.project.command(program).args(args).output().unwrap()
    }

    /// Returns processes that were started here, or whose working directory is here.
    pub(crate) fn processes(&self) -> Vec<String> {
        let (mark, root) = (format!("STAGE={}", self.mark), self.directory());
        let mut found = Vec::new();
        for entry in fs::read_dir("/proc").unwrap().flatten() {
            let path = entry.path();
            let environ = fs::read(path.join("environ")).unwrap_or_default();
            let is_marked = environ.split(|byte| *byte == 0).any(|one| one == mark.as_bytes());
            let is_inside = fs::read_link(path.join("cwd")).is_ok_and(|cwd| cwd.starts_with(&root));
            if is_marked || is_inside {
                let line = fs::read(path.join("cmdline")).unwrap_or_default();
                let line = String::from_utf8_lossy(&line).replace('\0', " ");
                found.push(format!("{} {line}", path.display()));
            }
        }
        found
    }

    pub(crate) fn assert_nobody_left(&self) {
        assert_eq!(self.processes(), Vec::<String>::new());
    }

    /// Waits until a condition is true.
    pub(crate) fn eventually(&self, what: &str, is_so: impl Fn() -> bool) {
        eventually(what, PATIENCE, is_so);
    }

    pub(crate) fn end(&self, child: Child) -> SessionOutput {
        SessionOutput::from(child.wait_with_output().unwrap())
    }
}
