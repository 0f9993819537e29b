//! A project, a model and an agent, with nothing of the user's own around them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use hookloop_testbed::model::{Call, Input, Model, Turn};
use hookloop_testkit::{TestProject, eventually};
use serde_json::{Value, json};

use crate::support::project_with;

/// No agent that is alone with a model takes longer, on a machine that has other things to do.
const PATIENCE: Duration = Duration::from_secs(120);

/// The answer has to be 42.
/// The exit code of complete work that no gate has proven.
pub(crate) const UNPROVEN: i32 = 6;

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
    /// One that hookloop does not know: docs/agents.md adds it.
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

    /// A limit of a turn in which the agent certainly begins to work, with three others on two cores.
    pub(crate) fn turn_limit(self) -> &'static str {
        match self {
            // It takes 20 seconds of processor time to start.
            Who::Opencode => "90s",
            _ => "30s",
        }
    }

    /// Its own tool for writing a file.
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

    /// Its own tool for running a command.
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

/// Where the agents are installed.
pub(crate) fn installed() -> PathBuf {
    let home = std::env::var_os("HOME").unwrap_or_default();
    let usual = || PathBuf::from(home).join(".cache/hookloop-agents");
    std::env::var_os("HOOKLOOP_AGENTS").map_or_else(usual, PathBuf::from)
}

pub(crate) struct Stage {
    pub(crate) who: Who,
    pub(crate) model: Model,
    project: TestProject,
    /// In the environment of everything that is started here.
    mark: String,
}

/// What a run of the program came to.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) events: Vec<Value>,
    pub(crate) stderr: String,
}

impl Ran {
    fn of(output: &Output) -> Ran {
        let text = String::from_utf8_lossy(&output.stdout);
        let events = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        Ran { code: output.status.code().unwrap_or(-1), events, stderr }
    }

    pub(crate) fn all(&self, kind: &str) -> Vec<&Value> {
        let of_kind = self.events.iter().filter(|event| event["type"] == kind);
        of_kind.map(|event| &event["data"]).collect()
    }

    /// The turns that ended.
    pub(crate) fn turns(&self) -> Vec<&Value> {
        self.all("turn_ended")
    }

    /// The only turn.
    pub(crate) fn turn(&self) -> &Value {
        let turns = self.turns();
        assert_eq!(turns.len(), 1, "{self:#?}");
        turns[0]
    }
}

impl Stage {
    /// A project without gates: what the agent does is what is looked at.
    pub(crate) fn new(who: Who, script: impl IntoIterator<Item = Turn>) -> Stage {
        Stage::with("version: 1\n", who, script)
    }

    pub(crate) fn with(config: &str, who: Who, script: impl IntoIterator<Item = Turn>) -> Stage {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let program = installed().join("node_modules/.bin").join(who.name());
        assert!(
            program.exists(),
            "{} is not there; CONTRIBUTING.md says how to install the agents",
            program.display()
        );
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let mark = format!("stage-{}-{number}", std::process::id());
        let stage = Stage { who, model: Model::start(script), project: project_with(config), mark };
        for name in ["tmp", "codex", "claude", "home/.gemini"] {
            fs::create_dir_all(stage.root().join(name)).unwrap();
        }
        stage.configure_agents();
        let git = |args: &[&str]| {
            let done = Command::new("git").args(args).current_dir(stage.project()).output();
            assert!(done.unwrap().status.success());
        };
        git(&["init", "--quiet"]);
        git(&["add", "."]);
        git(&["-c", "user.name=t", "-c", "user.email=t@example.invalid", "commit", "-qm", "start"]);
        let trusted = stage.command(&["hooks", "trust", "--yes"]).output().unwrap();
        assert!(trusted.status.success(), "{trusted:?}");
        stage
    }

    /// What the user of each agent would have configured, here so that it asks the model.
    fn configure_agents(&self) {
        let url = self.model.url();
        let codex = format!(
            "model = \"gpt-5.5\"\nmodel_provider = \"scripted\"\nanalytics.enabled = false\n\
             features = {{ plugins = false, apps = false }}\n[model_providers.scripted]\n\
             name = \"scripted\"\nbase_url = \"{url}/v1\"\nwire_api = \"responses\"\n\
             request_max_retries = 0\nstream_max_retries = 0\n"
        );
        fs::write(self.root().join("codex/config.toml"), codex).unwrap();
        let gemini = json!({
            "security": { "auth": { "selectedType": "gemini-api-key" },
                "folderTrust": { "enabled": false } },
            "telemetry": { "enabled": false }, "privacy": { "usageStatisticsEnabled": false },
            "general": { "enableAutoUpdate": false, "enableAutoUpdateNotification": false,
                "maxAttempts": 1 },
            "model": { "name": "gemini-2.5-pro" },
        });
        fs::write(self.root().join("home/.gemini/settings.json"), gemini.to_string()).unwrap();
        if self.who == Who::Qwen {
            // As the document has it, with the model's address.
            let document = crate::documents::block("docs/agents.md", "user");
            self.configure(&document.replace("https://example.invalid", &url));
        }
    }

    /// The user's own configuration of hookloop.
    pub(crate) fn configure(&self, text: &str) {
        let own = self.root().join("CONFIG/hookloop");
        fs::create_dir_all(&own).unwrap();
        fs::write(own.join("config.yaml"), text).unwrap();
    }

    pub(crate) fn project(&self) -> PathBuf {
        self.project.root()
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.project().parent().unwrap().to_owned()
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.project().join(name)
    }

    /// A turn of the model in which the agent writes a file.
    pub(crate) fn writes(&self, name: &str, text: &str) -> Turn {
        Turn::call("I write the file.", self.who.write(&self.path(name), text))
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = self.project.json_command(args);
        let path = std::env::var("PATH").unwrap();
        let bin = installed().join("node_modules/.bin");
        let (root, url) = (self.root(), self.model.url());
        command.env("PATH", format!("{}:{path}", bin.display())).env("STAGE", &self.mark);
        command.env("TMPDIR", root.join("tmp"));
        command.env("CODEX_HOME", root.join("codex"));
        command.env("CLAUDE_CONFIG_DIR", root.join("claude"));
        command.env("ANTHROPIC_BASE_URL", &url).env("ANTHROPIC_API_KEY", "key-of-nobody");
        command.env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1");
        command.env("CLAUDE_CODE_MAX_RETRIES", "0");
        command.env("CLAUDE_CODE_ENABLE_PROMPT_SUGGESTION", "false");
        // It lets nobody do everything who is root, unless this says that it does not matter.
        command.env("IS_SANDBOX", "1");
        command.env("GEMINI_API_KEY", "key-of-nobody").env("GOOGLE_GEMINI_BASE_URL", &url);
        command.env("GEMINI_CLI_HOME", root.join("home"));
        command.env("GEMINI_CLI_TRUST_WORKSPACE", "true").env("GEMINI_CLI_NO_RELAUNCH", "true");
        command.env("GEMINI_TELEMETRY_ENABLED", "false");
        for name in ["CONFIG", "DATA", "CACHE", "STATE"] {
            // What opencode writes; hookloop's own state is elsewhere for that.
            command.env(format!("XDG_{name}_HOME"), root.join(name));
        }
        for name in ["AUTOUPDATE", "MODELS_FETCH", "LSP_DOWNLOAD", "DEFAULT_PLUGINS"] {
            command.env(format!("OPENCODE_DISABLE_{name}"), "1");
        }
        command.env("OPENAI_API_KEY", "key-of-nobody");
        command.env("OPENCODE_CONFIG_CONTENT", self.opencode().to_string());
        command
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

    /// A session of one turn, unless `args` say otherwise.
    pub(crate) fn run(&self, args: &[&str]) -> Ran {
        Ran::of(&self.command(&self.arguments(args)).output().unwrap())
    }

    /// The same, without waiting for its end.
    pub(crate) fn start(&self, args: &[&str]) -> Child {
        self.command(&self.arguments(args)).spawn().unwrap()
    }

    pub(crate) fn hookloop(&self, args: &[&str]) -> Ran {
        Ran::of(&self.command(args).output().unwrap())
    }

    /// The agent itself, as its user would start it.
    pub(crate) fn by_hand(&self, args: &[&str]) -> Output {
        let mut command = Command::new(installed().join("node_modules/.bin").join(self.who.name()));
        command.args(args).current_dir(self.project()).env_clear();
        for (name, value) in self.command(&[]).get_envs() {
            command.env(name, value.unwrap());
        }
        command.stdin(Stdio::null()).output().unwrap()
    }

    /// Processes that were started here, or are at work here.
    pub(crate) fn processes(&self) -> Vec<String> {
        let (mark, root) = (format!("STAGE={}", self.mark), self.root());
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

    /// Waits until something is so.
    pub(crate) fn eventually(&self, what: &str, is_so: impl Fn() -> bool) {
        eventually(what, PATIENCE, is_so);
    }

    pub(crate) fn end(&self, child: Child) -> Ran {
        Ran::of(&child.wait_with_output().unwrap())
    }
}
