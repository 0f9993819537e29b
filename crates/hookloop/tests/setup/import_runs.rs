//! Imported files work: each test imports a tool's own documented file, trusts it, runs a scripted
//! agent, and counts the runs of each hook.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::cli::{BINARY, ProgramOutput, Project};

const COMPLETE: &str = "<promise>COMPLETE</promise>";
const SEED_ITERATR: &str = include_str!("seeds/iteratr.hooks.yml");
const SEED_CODEMIE: &str = include_str!("seeds/codemie-cli.config.json");
const SEED_OCTOPOID: &str = include_str!("seeds/octopoid.yaml");
const SEED_AUTOMATION: &str = include_str!("seeds/automation-hooks.json");

/// Returns a shell line for a hook that counts its runs under `name`.
fn counting(name: &str) -> String {
    format!("echo run >> \"$HOME/{name}.count\"")
}

impl Project {
    /// Returns the number of runs of the hook that counts under `name`.
    fn count(&self, name: &str) -> usize {
        let counted = fs::read_to_string(self.home().join(format!("{name}.count")));
        counted.unwrap_or_default().lines().count()
    }

    /// Writes a script of the project that counts its runs, then does `rest`.
    fn script(&self, path: &str, name: &str, rest: &str) {
        self.files(&[(path, &format!("#!/bin/sh\n{}\n{rest}\n", counting(name)))]);
    }

    /// Makes the project a git repository with one commit.
    fn commit(&self) {
        let line = "git init -q -b main && git config user.email a@b && git config user.name a && \
                    git add -A && git commit -q -m begin";
        let made = self.shell(line);
        assert_eq!(made.code, 0, "{made:?}");
    }

    /// Runs an agent with these turns; programs in `HOME/bin` have precedence.
    fn run_turns(&self, args: &[&str], turns: &Value) -> ProgramOutput {
        let script = self.home().join("turns.json");
        fs::write(&script, turns.to_string()).unwrap();
        let agent = format!("scripted:{}", script.display());
        self.with_programs(&[&["run", "--agent", &agent], args].concat())
    }

    fn with_programs(&self, args: &[&str]) -> ProgramOutput {
        let bin = Path::new(BINARY).parent().unwrap().display();
        let path = format!("{}/bin:{bin}:/usr/bin:/bin", self.home().display());
        self.hookloop(args).env("PATH", path).output().unwrap().into()
    }

    fn import(&self, args: &[&str]) {
        self.ok(&[&["import"], args].concat());
        self.ok(&["hooks", "trust", "--yes"]);
    }

    /// Returns the hook output in prompts with the hook's name, without the sentences that hookloop
    /// adds.
    fn piped(&self) -> Vec<(String, String)> {
        let text = |event: &Value, field: &str| event["data"][field].as_str().unwrap().to_owned();
        let piped = self.events_of("output_piped");
        let all = piped.iter().map(|event| (text(event, "from"), text(event, "text")));
        all.filter(|(from, _)| from != "hookloop").collect()
    }
}

/// Returns turns that change a file and do not claim completion.
fn changes(count: usize) -> Vec<Value> {
    (0..count).map(|n| json!({"write": {"work": format!("{n}")}, "say": "changed"})).collect()
}

#[test]
fn the_codemie_file_of_the_seed_runs_its_stop_hook_at_each_end_of_a_turn() {
    let project = Project::bare();
    project.files(&[(".codemie/codemie-cli.config.json", SEED_CODEMIE)]);
    // The seed's test hook: three failures, one failure, all passed.
    let answers = "case $(wc -l < \"$HOME/stop.count\") in\n\
                   1) echo '3 tests failing' >&2; echo 'auth, db, api'; exit 2;;\n\
                   2) echo '1 test failing' >&2; exit 2;;\n\
                   *) echo 'All tests passed!'; exit 0;;\nesac";
    project.script(".codemie/run-tests.sh", "stop", answers);
    project.commit();
    project.import(&["codemie"]);
    let run = project.run_turns(&["Implement feature X"], &json!(changes(3)));
    assert_eq!(run.code, 0, "{run:?}");
    assert_eq!(project.count("stop"), 3);
    assert_eq!(project.events_of("turn_ended").len(), 3);
    let piped = project.piped();
    assert_eq!(piped.len(), 2, "{piped:?}");
    // Standard error and standard output are both in the feedback.
    assert!(piped[0].1.contains("3 tests failing") && piped[0].1.contains("auth, db, api"));
    assert!(piped[1].1.contains("1 test failing"), "{piped:?}");
}

#[test]
fn imported_hook_retries_are_counted_as_in_codemie() {
    let project = Project::bare();
    let file = SEED_CODEMIE.replace("\"maxHookRetries\": 5", "\"maxHookRetries\": 2");
    project.files(&[(".codemie/codemie-cli.config.json", &file)]);
    project.script(".codemie/run-tests.sh", "stop", "echo no >&2; exit 2");
    project.commit();
    project.import(&["codemie"]);
    let run = project.run_turns(&["X"], &json!(changes(6)));
    // The first run and two retries. CodeMie then accepts the work; hookloop asks a person.
    assert_eq!((run.code, project.count("stop")), (3, 3), "{run:?}");
}

#[test]
fn more_imported_retries_than_the_users_limit_are_reported() {
    let project = Project::bare();
    let file = SEED_CODEMIE.replace("\"maxHookRetries\": 5", "\"maxHookRetries\": 8");
    project.files(&[(".codemie/codemie-cli.config.json", &file)]);
    let report = project.ok(&["import", "codemie"]);
    let row = report.lines().find(|line| line.contains("limits.gate_retries: 8")).unwrap();
    assert!(row.contains("`limits: {gate_retries: 8}`"), "{row}");
    assert!(row.contains("~/.config/hookloop/config.yaml"), "{row}");
}

#[test]
fn claude_settings_run_each_hook_as_often_as_claude_code() {
    let project = Project::bare();
    let hook = |name: &str| json!([{"hooks": [{"type": "command", "command": counting(name)}]}]);
    let settings = json!({"hooks": {
        "SessionStart": [
            {"matcher": "startup", "hooks": [{"type": "command", "command": counting("start")}]},
            {"matcher": "compact", "hooks": [{"type": "command", "command": counting("compact")}]},
        ],
        "UserPromptSubmit": hook("prompt"),
        "Stop": [{"hooks": [
            {"type": "command", "command": "\"$CLAUDE_PROJECT_DIR\"/.claude/hooks/stop.sh", "timeout": 60},
            {"type": "command", "command": counting("second")},
        ]}],
        "SessionEnd": hook("end"),
    }});
    project.files(&[(".claude/settings.json", &settings.to_string())]);
    let answer = "[ $(wc -l < \"$HOME/stop.count\") -ge 3 ] || { echo 'not yet' >&2; exit 2; }";
    project.script(".claude/hooks/stop.sh", "stop", answer);
    project.commit();
    project.import(&["claude"]);
    let run = project.run_turns(&["Do it"], &json!(changes(3)));
    assert_eq!(run.code, 0, "{run:?}");
    let counts =
        ["start", "compact", "prompt", "stop", "second", "end"].map(|name| project.count(name));
    assert_eq!(counts, [1, 0, 1, 3, 3, 1], "{run:?}");
}

/// The seed's complete file, with substitutes for the programs that it names.
#[test]
fn the_iteratr_file_of_the_seed_runs_at_all_six_points() {
    let project = Project::bare();
    project.files(&[(".iteratr.hooks.yml", SEED_ITERATR)]);
    let count_arguments =
        |name: &str| format!("echo \"$*\" >> \"$HOME/{name}.count\"; echo \"{name} says $*\"");
    for name in ["go", "golangci-lint", "curl"] {
        project.program(name, &count_arguments(name));
    }
    let git = format!(
        "case \"$1\" in pull|push) {} ;; *) exec /usr/bin/git \"$@\" ;; esac",
        count_arguments("git")
    );
    project.program("git", &git);
    project.files(&[
        ("scripts/notify-complete.sh", &format!("#!/bin/sh\n{}", count_arguments("notify"))),
        ("scripts/validate-task.sh", &format!("#!/bin/sh\n{}", count_arguments("validate"))),
    ]);
    project.files(&[("work", "0")]);
    project.commit();
    project.import(&["iteratr"]);
    let (first, second) = (project.add("first", &[]), project.add("second", &[]));
    let done = |text: &str| json!({"write": {"work": text}, "say": COMPLETE});
    let turns = json!([
        done("1"),
        {"fail": "the network is down"},
        {"say": "I see."},
        done("2"),
    ]);
    let run = project.run_turns(&["--tasks", "--name", "night"], &turns);
    assert_eq!(run.code, 6, "{run:?}");
    let lines = |name: &str| fs::read_to_string(project.home().join(format!("{name}.count")));
    // Once per session.
    assert_eq!(lines("git").unwrap(), "pull --rebase\npush origin HEAD\n");
    assert_eq!(lines("notify").unwrap(), "night\n");
    // Before each of three iterations, including the failed one, and after the two that completed.
    assert_eq!(project.count("golangci-lint"), 3, "{run:?}");
    let go = lines("go").unwrap();
    assert_eq!(go.matches("build ./...").count(), 1, "{go}");
    assert_eq!(go.matches("test ./... -short").count(), 2, "{go}");
    let curl = lines("curl").unwrap();
    assert_eq!(curl.lines().count(), 2, "{curl}");
    assert!(curl.contains("{\"text\": \"Iteration 1 done\"}"), "{curl}");
    // For each completed task, with its id.
    let validated = lines("validate").unwrap();
    let mut validated: Vec<&str> = validated.lines().collect();
    let mut expected = [first.as_str(), second.as_str()];
    validated.sort_unstable();
    expected.sort_unstable();
    assert_eq!(validated, expected);
    // Piped output reaches the agent; a notification does not.
    let from: Vec<String> = project.piped().into_iter().map(|(from, _)| from).collect();
    assert!(!from.iter().any(|from| from.contains("curl")), "{from:?}");
    assert_eq!(project.events_of("iteration_started").len(), 3);
    let recoveries = project.events_of("turn_started");
    assert!(recoveries.iter().any(|turn| turn["data"]["turn"] == "recovery"), "{recoveries:?}");
}

#[test]
fn lefthook_commands_run_once_for_each_claim() {
    let project = Project::bare();
    let file = format!(
        "pre-commit:\n  parallel: true\n  commands:\n    unit: {{run: '{}; [ $(wc -l < \"$HOME/unit.count\") -ge 2 ]'}}\n\
         \x20   style: {{run: '{}'}}\npre-push:\n  jobs:\n    - {{name: build, run: '{}'}}\n",
        counting("unit"),
        counting("style"),
        counting("build")
    );
    project.files(&[("lefthook.yml", &file)]);
    project.commit();
    project.import(&["lefthook"]);
    let done = |text: &str| json!({"write": {"work": text}, "say": COMPLETE});
    let run = project.run_turns(&["X"], &json!([done("1"), done("2")]));
    assert_eq!(run.code, 0, "{run:?}");
    assert_eq!(["unit", "style", "build"].map(|name| project.count(name)), [2, 2, 2], "{run:?}");
}

#[test]
fn the_octopoid_file_of_the_seed_submits_each_task_with_the_hooks_of_its_type() {
    let project = Project::bare();
    project
        .files(&[(".octopoid/config.yaml", SEED_OCTOPOID), ("Makefile", "test:\n\techo tested\n")]);
    // The user's definition of the agent that the types name.
    let agent = "#!/bin/sh\ncat > /dev/null\ndate +%N > work\necho '<promise>COMPLETE</promise>'\n";
    fs::write(project.home().join("agent.sh"), agent).unwrap();
    let own = format!(
        "version: 1\ngates: none\nagents:\n  implementer-1: {{type: command, command: [sh, {}]}}\n",
        project.home().join("agent.sh").display()
    );
    fs::write(project.home().join(".config/hookloop/config.yaml"), own).unwrap();
    project.commit();
    project.import(&["octopoid"]);
    for (goal, kind) in [("P", "product"), ("I", "infrastructure"), ("H", "hotfix")] {
        project.add(goal, &["--type", kind]);
    }
    project.add("untyped", &[]);
    let run = project.run(&["run", "--tasks"]);
    let ran = |hook: &str| {
        let is_it = |event: &&Value| {
            event["data"]["hook_name"] == hook && event["data"]["point"] == "before_submit"
        };
        project.events_of("hook_ran").iter().filter(is_it).count()
    };
    assert_eq!(project.events_of("task_submitted").len(), 4, "{run:?}");
    // Rebased: all except the hotfix. Tested: the product and the hotfix. Pull requests: all.
    assert_eq!((ran("rebase_on_main"), ran("run_tests"), ran("create_pr")), (3, 2, 4), "{run:?}");
}

#[test]
fn ralph_gates_and_hooks_run_at_their_phases() {
    let project = Project::bare();
    let hook = |name: &str| json!([{"name": name, "command": ["sh", "-c", counting(name)]}]);
    let file = json!({
        "event_loop": {"max_iterations": 10, "completion_promise": "LOOP_COMPLETE"},
        "backpressure": {"gates": [{"name": "tests", "command": "grep -q 2 work"}]},
        "hooks": {"enabled": true, "events": {
            "pre.loop.start": hook("start"),
            "pre.iteration.start": hook("iteration"),
            "post.loop.complete": hook("end"),
            "pre.loop.error": hook("error"),
        }},
    });
    // JSON is valid YAML.
    project.files(&[("ralph.yml", &file.to_string())]);
    project.commit();
    project.import(&["ralph"]);
    let done = |text: &str| json!({"write": {"work": text}, "say": COMPLETE});
    let turns = json!([{"write": {"work": "0"}, "say": "more to do"}, {"fail": "down"}, done("1"), done("2")]);
    let run = project.run_turns(&["X"], &turns);
    assert_eq!(run.code, 0, "{run:?}");
    let counts = ["start", "iteration", "error", "end"].map(|name| project.count(name));
    assert_eq!(counts, [1, 4, 1, 1], "{run:?}");
    let tested = project.events_of("hook_ran");
    let tested = tested.iter().filter(|event| event["data"]["hook_name"] == "tests");
    assert_eq!(tested.count(), 2, "{run:?}");
}

#[test]
fn automation_hooks_of_the_seed_act_on_their_events() {
    let project = Project::bare();
    project.files(&[("data/automation-hooks.json", SEED_AUTOMATION)]);
    project.import(&["automation-hooks"]);
    let research =
        project.add("Research graph patterns", &["--label", "agent", "--label", "research"]);
    let next = project.add("Use them", &["--depends-on", &research]);
    let run = project
        .run_turns(&["--task", &research], &json!([{"write": {"work": "1"}, "say": COMPLETE}]));
    assert_eq!(run.code, 6, "{run:?}");
    let goals = project.goals();
    let reviews = goals.iter().filter(|goal| *goal == "Review: Research graph patterns").count();
    assert_eq!(reviews, 1, "{goals:?}");
    assert_eq!(project.events_of("dependency_satisfied").len(), 1);
    assert_eq!(project.state_of(&next), "ready");
    let metrics = project.events();
    let is_metric = |event: &&Value| event.to_string().contains("agent_metrics");
    assert_eq!(metrics.iter().filter(is_metric).count(), 1, "{metrics:?}");
}

#[test]
fn imported_task_copilot_tasks_run_until_completion_is_promised() {
    let project = Project::bare();
    let servers = json!({"mcpServers": {
        "task-copilot": {"command": "node", "args": ["/opt/mcp-servers/task-copilot/dist/index.js"]},
        "other": {"command": "other"},
    }});
    let tasks = json!({"tasks": [
        {"id": "TASK-1", "title": "Store", "status": "pending", "assignedAgent": "me"},
        {"id": "TASK-2", "title": "Query", "status": "in_progress", "metadata": {"dependencies": ["TASK-1"]}},
        {"id": "TASK-3", "title": "Done", "status": "completed"},
        {"id": "TASK-4", "title": "Stuck", "status": "blocked", "blockedReason": "which one?"},
    ]});
    project.files(&[(".mcp.json", &servers.to_string()), ("tasks.json", &tasks.to_string())]);
    let report = project.ok(&["import", "task-copilot"]);
    assert!(report.contains("claude mcp add --scope project hookloop -- hookloop mcp"), "{report}");
    assert!(project.config().contains("stop_when: default"), "{}", project.config());
    project.ok(&["import", "task-copilot", "tasks.json"]);
    let turns = json!([
        {"write": {"work": "0"}, "say": "not yet"},
        {"write": {"work": "1"}, "say": COMPLETE},
        {"write": {"work": "2"}, "say": COMPLETE},
    ]);
    let run = project.run_turns(&["--tasks"], &turns);
    assert_eq!(project.events_of("iteration_started").len(), 3, "{run:?}");
    let state = |id: &str| project.state_of(id);
    let states = ["TASK-1", "TASK-2", "TASK-3", "TASK-4"].map(state);
    assert_eq!(states, ["completed", "completed", "completed", "blocked"]);
}

/// Tasks of trackers are imported in the order of their dependencies, and each is worked on once.
#[test]
fn imported_tasks_are_worked_on_once_each() {
    let beads = "{\"id\": \"bd-1\", \"title\": \"Store\", \"status\": \"open\", \"priority\": 1}\n\
         {\"id\": \"bd-2\", \"title\": \"Query\", \"status\": \"open\", \"priority\": 0, \"dependencies\": \
         [{\"issue_id\": \"bd-2\", \"depends_on_id\": \"bd-1\", \"type\": \"blocks\"}]}\n\
         {\"id\": \"bd-3\", \"title\": \"Done\", \"status\": \"closed\"}\n";
    let kanban = "Issue ID,Title,Status,Priority\nVK-1,Store,To do,High\nVK-2,Query,Backlog,Low\nVK-3,Done,Done,\n";
    for (tool, name, text) in
        [("beads", "issues.jsonl", beads), ("vibe-kanban", "issues.csv", kanban)]
    {
        let project = Project::with_config("");
        project.files(&[(name, text)]);
        project.ok(&["import", tool, name]);
        let done = |n: u32| json!({"write": {"work": n.to_string()}, "say": COMPLETE});
        let run = project.run_turns(&["--tasks"], &json!([done(1), done(2), done(3)]));
        assert_eq!(run.code, 6, "{tool}: {run:?}");
        let taken = project.events_of("session_task_claimed");
        let goals: Vec<Value> = taken
            .iter()
            .map(|event| project.task(event["data"]["task"].as_str().unwrap())["goal"].clone())
            .collect();
        assert_eq!(goals, ["Store", "Query"], "{tool}");
    }
}

const LINTED: &str = "hooks:\n  post_iteration:\n    - {command: 'echo lint >> \"$HOME/lint.count\"', timeout: 60}\n";

#[test]
fn an_import_is_merged_into_the_file_that_init_wrote_and_runs() {
    let project = Project::bare();
    project.files(&[
        (".iteratr.hooks.yml", LINTED),
        ("package.json", r#"{"scripts": {"test": "true"}}"#),
    ]);
    project.commit();
    let first = project.ok(&["init", "--yes", "--no-run"]);
    assert!(first.contains("hookloop import iteratr .iteratr.hooks.yml --write"), "{first}");
    let before = project.config();
    let printed = project.ok(&["import", "iteratr", "--write"]);
    assert!(printed.contains("+  post_iteration:") || printed.contains("+hooks:"), "{printed}");
    assert!(
        printed.contains("Wrote ") && printed.contains("Next: hookloop hooks trust"),
        "{printed}"
    );
    // The previous lines are still there, in their order.
    let after = project.config();
    let mut lines = after.lines();
    assert!(before.lines().all(|line| lines.any(|other| other == line)), "{before}\n{after}");
    assert!(project.ok(&["import", "iteratr", "--write"]).contains("Nothing to write"));
    assert_eq!(project.config(), after);
    project.trust();
    let run = project.run_turns(&["X"], &json!([{"write": {"work": "1"}, "say": COMPLETE}]));
    assert_eq!(project.count("lint"), 1, "{run:?}");
}

/// Its tasks would wait for a person, and `on_task_complete` would never run.
#[test]
fn an_import_without_a_gate_suggests_a_stop_hook() {
    for (tool, name, file, is_told) in [
        ("iteratr", ".iteratr.hooks.yml", LINTED, true),
        ("codemie", ".codemie/codemie-cli.config.json", SEED_CODEMIE, false),
    ] {
        let project = Project::bare();
        project.files(&[(name, file)]);
        let printed = project.ok(&["import", tool]);
        assert_eq!(printed.contains("add a `stop` hook"), is_told, "{printed}");
    }
}

/// Built-in reactions run without trust. Steps of a delivery push, so they need it.
#[test]
fn an_import_of_only_built_in_reactions_does_not_ask_for_trust() {
    let steps = "hooks:\n  before_submit: [rebase_on_main, create_pr]\n";
    for (tool, text, is_asked) in
        [("automation-hooks", SEED_AUTOMATION, false), ("octopoid", steps, true)]
    {
        let project = Project::bare();
        project.files(&[("file", text)]);
        let printed = project.ok(&["import", tool, "file"]);
        assert!(printed.contains("Wrote ") && printed.contains("add a `stop` hook"), "{printed}");
        assert_eq!(printed.contains("hookloop hooks trust"), is_asked, "{printed}");
    }
    // Together with a hook of the project.
    for is_trusted in [true, false] {
        let project =
            Project::with_config("hooks:\n  stop:\n    - {name: tests, command: 'true'}\n");
        if is_trusted {
            project.trust();
        }
        project.files(&[("file", SEED_AUTOMATION)]);
        let printed = project.ok(&["import", "automation-hooks", "--write", "file"]);
        assert!(printed.contains("Wrote "), "{printed}");
        assert_eq!(printed.contains("Next: hookloop hooks trust"), !is_trusted, "{printed}");
        assert_eq!(printed.contains("Next: hookloop hooks list"), is_trusted, "{printed}");
    }
}

#[test]
fn an_import_that_contradicts_the_file_is_refused_by_name() {
    let project = Project::with_config(
        "# ours\nhooks:\n  stop:\n    - {name: tests, command: make test}\nlimits:\n  max_iterations: 5\n",
    );
    let before = project.config();
    let file = json!({
        "event_loop": {"max_iterations": 9},
        "backpressure": {"gates": [{"name": "tests", "command": "npm test"}]},
    });
    project.files(&[("ralph.yml", &file.to_string())]);
    let error = project.fails(1, &["import", "ralph", "--write"]);
    for part in
        ["a hook `tests` is there", "`limits.max_iterations` is 5, and 9", "nothing was written"]
    {
        assert!(error.contains(part), "{part}: {error}");
    }
    assert_eq!(project.config(), before);
}

/// Checks that a file keeps its line ends, its byte order mark and its comments, and that the hooks
/// of both files are read.
#[test]
fn an_import_keeps_the_line_ends_of_the_file() {
    let project = Project::with_config("");
    project.files(&[(".iteratr.hooks.yml", LINTED)]);
    let before = "\u{feff}version: 1\r\n# ours\r\nhooks: {} # none yet\r\nlimits:\r\n  max_iterations: 5\r\n";
    project.files(&[("hookloop.yaml", before)]);
    project.ok(&["import", "iteratr", "--write"]);
    let after = project.config();
    assert!(
        after.starts_with("\u{feff}version: 1\r\n# ours\r\nhooks: # none yet\r\n"),
        "{after:?}"
    );
    assert_eq!(after.matches('\n').count(), after.matches("\r\n").count(), "{after:?}");
    assert!(after.ends_with("limits:\r\n  max_iterations: 5\r\n"), "{after:?}");
    let hooks = project.json(&["hooks", "explain", "post_iteration"]);
    assert!(hooks.to_string().contains("lint.count"), "{hooks}");
    assert!(project.ok(&["import", "iteratr", "--write"]).contains("Nothing to write"));
    assert_eq!(project.config(), after);
}

#[test]
fn an_import_into_a_file_with_a_mistake_writes_nothing() {
    let project = Project::with_config("");
    project.files(&[(".iteratr.hooks.yml", LINTED)]);
    for (before, part) in [
        ("version: 1\nhooks: []\n", "line 2"),
        ("version: 1\nhooks: &all\n  stop: [{command: make}]\n", "anchors"),
        (
            "version: 1\nhooks: {stop: [{command: make}]}\n",
            "line 2: `hooks` is written in one line",
        ),
    ] {
        project.files(&[("hookloop.yaml", before)]);
        let run = project.run(&["import", "iteratr", "--write"]);
        assert_ne!(run.code, 0, "{before}: {run:?}");
        let said = format!("{run:?}");
        assert!(said.contains(part) && said.contains("nothing was written"), "{before}: {said}");
        assert_eq!(project.config(), before);
    }
}

/// Only a person may change the hooks of a project.
#[test]
fn an_agent_cannot_write_an_import() {
    let project = Project::with_config("# ours\n");
    project.files(&[(".iteratr.hooks.yml", LINTED)]);
    let turns =
        json!([{"run": "hookloop import iteratr --write > out 2>&1 || true", "say": COMPLETE}]);
    let run = project.run_turns(&["X"], &turns);
    let out = fs::read_to_string(project.root().join("out")).unwrap_or_default();
    assert!(out.starts_with("error: "), "{out} {run:?}");
    assert_eq!(project.config(), "version: 1\n# ours\n");
}
