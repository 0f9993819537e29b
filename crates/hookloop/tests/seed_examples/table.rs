//! Every requirement of the five specifications of hookloop, with the test that proves it. If
//! hookloop differs, the row has the page of the book that explains the difference.
//!
//! The numbers before the dash are those of the specifications: 000 session hooks (iteratr), 001
//! stop hooks that retry (CodeMie), 002 delivery hooks (Octopoid), 003 task events and automation
//! hooks, 004 stop hooks over MCP (task-copilot).

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Requirements in the table. Rows of tables and items of lists in the specifications count
/// separately.
const COUNT: usize = 152;

struct Requirement {
    id: &'static str,
    text: &'static str,
    shown: Shown,
}

enum Shown {
    /// Proven by a test of a binary: a directory or file of `tests`, with the crate in front if it
    /// is not this one.
    By { binary: &'static str, test: &'static str },
    /// hookloop differs from the requirement: the page contains these words.
    Differs { page: &'static str, words: &'static str },
}

const fn by(
    id: &'static str,
    text: &'static str,
    binary: &'static str,
    test: &'static str,
) -> Requirement {
    Requirement { id, text, shown: Shown::By { binary, test } }
}

const fn differs(
    id: &'static str,
    text: &'static str,
    page: &'static str,
    words: &'static str,
) -> Requirement {
    Requirement { id, text, shown: Shown::Differs { page, words } }
}

const ITERATR: &str = "the_iteratr_file_of_the_seed_runs_at_all_six_points";
const CODEMIE: &str = "the_codemie_file_of_the_seed_runs_its_stop_hook_at_each_end_of_a_turn";
const OCTOPOID: &str = "the_octopoid_file_of_the_seed_submits_each_task_with_the_hooks_of_its_type";
const POINTS: &str = "hook_points_run_in_order_and_pipe_output_to_the_next_prompt";
const PIPED: &str = "piped_output_of_an_iteration_is_in_the_next_prompt";
const PAYLOADS: &str = "the_eight_events_carry_the_documented_payloads";
const PRESETS: &str = "hook_presets_decide_by_promise_and_validation";
const CONTEXT: &str = "a_custom_stop_hook_decides_with_the_agents_context";
const DIFFERENCES: &str = "from/README.md";

#[rustfmt::skip]
const TABLE: [Requirement; COUNT] = [
    // Session hooks.
    by("000-01", "session_start runs once, before the first iteration", "setup", ITERATR),
    by("000-02", "pre_iteration runs before each iteration", "setup", ITERATR),
    by("000-03", "post_iteration runs after each iteration that completed", "setup", ITERATR),
    by("000-04", "session_end runs once, after final delivery", "sessions", POINTS),
    by("000-05", "on_task_complete runs when a task completes", "setup", ITERATR),
    by("000-06", "on_error runs on any failure of an iteration", "setup", ITERATR),
    by("000-07", "pipe_output is false by default", "sessions", PIPED),
    by("000-08", "piped output of session_start is in the first prompt", "sessions", POINTS),
    by("000-09", "piped output of pre_iteration is in that prompt, behind what is pending", "sessions", POINTS),
    by("000-10", "piped output of post_iteration is in the next prompt", "sessions", POINTS),
    by("000-11", "pipe_output is ignored at session_end", "sessions", POINTS),
    by("000-12", "piped output of a hook of a task's event is pending", "sessions", "hook_output_for_tasks_that_the_agent_adds_is_in_its_next_prompt"),
    by("000-13", "piped output of on_error is sent at once, as a recovery prompt", "sessions", POINTS),
    by("000-14", "pending output is in the order in which it came, and drained by an iteration", "sessions", POINTS),
    by("000-15", "what is pending at the end is sent, and its answer awaited, before session_end", "sessions", POINTS),
    by("000-16", "a failed iteration does not end the session: the next one follows", "setup", ITERATR),
    by("000-17", "the file's format: version, hooks, command, timeout, pipe_output", "hooks", "the_session_hooks_of_the_specification_load_in_order"),
    by("000-18", "the file as it is written runs, by import", "setup", ITERATR),
    by("000-19", "a file beside a project's own is taken over", "setup", "an_import_is_merged_into_the_file_that_init_wrote_and_runs"),
    by("000-20", "timeout is in seconds", "setup", "iteratr_hook_points_and_timeouts_are_imported"),
    by("000-21", "{{session}} in all hooks", "sessions", POINTS),
    by("000-22", "{{iteration}} in post_iteration", "setup", ITERATR),
    by("000-23", "{{task_id}} in on_task_complete", "setup", ITERATR),
    by("000-24", "{{task_content}} in on_task_complete, {{error}} in on_error", "seed_examples", "variables_of_session_hooks_have_their_values"),
    by("000-25", "a hook that fails is recorded, and its output has the error", "sessions", "failed_reactions_do_not_fail_the_session"),
    by("000-26", "a hook that times out is recorded, and what it printed is kept", "sessions", "failed_reactions_do_not_fail_the_session"),
    by("000-27", "cancelling reaches hooks and agent", "sessions", "a_signal_cancels_the_session_and_runs_session_end"),
    by("000-28", "no hook fails the session", "sessions", "failed_reactions_do_not_fail_the_session"),
    by("000-29", "validation test: the agent sees `Test output for agent` in iteration 2, not `Side effect only`", "sessions", PIPED),
    by("000-30", "session_end after a crash (there: not at all)", "sessions", "a_killed_session_is_ended_at_the_next_start"),
    by("000-31", "pre_iteration pipes only with pipe_output: true", "sessions", PIPED),
    by("000-32", "tasks that complete while the agent works are seen", "reactions", "reactions_to_a_turns_commands_run_after_the_turn"),
    differs("000-33", "task completions by NATS subject `iteratr.events.…`", DIFFERENCES, "no NATS subject of its own"),
    by("000-34", "the number of the iteration in a hook is the one that its prompt has", "sessions", "pre_iteration_hooks_have_the_iteration_number_of_the_prompt"),
    // Stop hooks that retry.
    by("001-01", "exit code 2 blocks, with standard error and standard output as feedback", "setup", CODEMIE),
    by("001-02", "exit code 1 does not block an imported hook", "seed_examples", "an_imported_stop_hook_with_exit_code_1_lets_the_agent_complete"),
    by("001-03", "exit code 0 lets the agent complete", "setup", CODEMIE),
    by("001-04", "maxHookRetries is 5 by default", "seed_examples", "a_gate_sends_the_agent_back_five_times_by_default"),
    by("001-05", "maxHookRetries is read from .codemie/codemie-cli.config.json", "setup", "imported_hook_retries_are_counted_as_in_codemie"),
    by("001-06", "the counter grows with each block", "setup", "imported_hook_retries_are_counted_as_in_codemie"),
    by("001-07", "the counter starts again with a new message of the user", "hookloop-core/conversation", "a_message_of_a_person_starts_the_count_of_gate_retries_again"),
    by("001-08", "feedback is the message of the next turn", "sessions", "a_session_completes_after_two_failed_gate_attempts"),
    by("001-09", "the agent has the feedback in the history of its conversation", "agents", "claude_fixes_a_failed_gate"),
    by("001-10", "the conversation goes on after a block by default", "hookloop-core/conversation", "gate_feedback_continues_the_conversation_unless_it_is_fresh"),
    differs("001-11", "feedback begins with `[Hook feedback]:`", DIFFERENCES, "[Hook feedback]:"),
    by("001-12", "the user sees each retry and its reason", "seed_examples", "a_person_sees_each_retry_and_its_reason"),
    differs("001-13", "at the limit the work completes with a warning", "from/agent-hooks.md", "--at-retry-limit accept"),
    by("001-14", "a person may accept the work at the limit", "hooks", "only_the_user_can_set_at_retry_limit_to_accept"),
    by("001-15", "stop hooks run again at each retry", "setup", CODEMIE),
    by("001-16", "the retry limit prevents endless loops", "sessions", "at_the_limit_of_retries_a_human_is_needed"),
    by("001-17", "the configuration as it is written runs, by import", "setup", CODEMIE),
    by("001-18", "the test hook: 3 failing, 1 failing, all passed", "setup", CODEMIE),
    by("001-19", "a matcher of `*` picks every stop", "setup", CODEMIE),
    by("001-20", "the user is asked at the limit: continue, abort or accept", "screens", "a_decision_requested_in_another_terminal_is_answered_in_watch"),
    by("001-21", "the state of retries outlives an interruption", "crash_sessions", "a_session_has_the_same_result_after_repeated_crashes"),
    by("001-22", "existing scripts run unchanged", "hooks", "a_hook_script_for_another_agent_runs_unchanged"),
    by("001-23", "a gate that blocks without a word still says why", "hooks", "exit_codes_and_json_output_decide_a_gates_verdict"),
    differs("001-24", "maxHookRetries: 0 is the default of 5", "from/agent-hooks.md", "0 is none"),
    by("001-25", "output of a hook that fails without blocking is shown", "sessions", "output_of_an_open_gate_that_failed_is_shown"),
    by("001-26", "very large output is shortened, and says by how much", "sessions", "omitted_hook_output_is_counted_in_bytes_and_whole_lines"),
    // Delivery hooks.
    by("002-01", "before_submit runs before work is submitted", "setup", OCTOPOID),
    by("002-02", "after_submit, before_merge and after_merge run at their moments", "delivery", "a_merge_after_submit_unblocks_dependent_tasks"),
    by("002-03", "rebase_on_main rebases on the base", "delivery", "work_is_rebased_on_a_moved_base_and_gated_again"),
    by("002-04", "create_pr pushes the branch and opens a request", "delivery", "a_task_opens_a_pull_request_that_is_merged"),
    by("002-05", "run_tests finds the test runner and runs it", "setup", OCTOPOID),
    by("002-06", "tasks have a type", "setup", OCTOPOID),
    by("002-07", "a task with a type has the hooks of its type", "delivery", "hooks_of_the_task_type_replace_hooks_of_the_project"),
    by("002-08", "a type without hooks, and no type, have the project's", "delivery", "hooks_of_the_task_type_replace_hooks_of_the_project"),
    by("002-09", "without hooks of the project: create_pr alone", "delivery", "default_hooks_push_the_work_and_leave_the_checkout_unchanged"),
    by("002-10", "hooks of an agent come before those of type and project", "seed_examples", "hooks_of_an_agent_replace_those_of_the_project"),
    by("002-11", "a type's agents alone work on it", "delivery", "tasks_of_a_type_with_agents_are_claimed_only_by_them"),
    by("002-12", "types without a list are open to all agents", "delivery", "hooks_of_the_task_type_replace_hooks_of_the_project"),
    by("002-13", "an agent that a type names and that is not there is named", "seed_examples", "an_undefined_agent_of_a_task_type_is_reported_by_run_why_and_doctor"),
    by("002-14", "a rebase conflict goes to the agent, which resolves it; then the request is made", "delivery", "a_rebase_conflict_is_resolved_by_the_agent"),
    by("002-15", "a real agent resolves the conflict in its conversation", "agents", "claude_resolves_a_conflict"),
    by("002-16", "failed tests go to the agent with their output", "delivery", "a_submit_hook_that_never_passes_needs_a_person_and_work_is_kept"),
    by("002-17", "the hooks run again after a remediation", "delivery", "a_rebase_conflict_is_resolved_by_the_agent"),
    by("002-18", "a hook that still fails puts the task back, with the reason hook_failure", "delivery", "a_submit_hook_that_never_passes_needs_a_person_and_work_is_kept"),
    by("002-19", "the first hook that fails ends the list", "delivery", "a_submit_hook_that_never_passes_needs_a_person_and_work_is_kept"),
    by("002-20", "a hook may be skipped: no forge, no request", "delivery", "a_local_remote_gets_a_branch_and_create_pr_is_skipped"),
    by("002-21", "no hooks at a point: the work passes", "delivery", "hooks_of_the_task_type_replace_hooks_of_the_project"),
    by("002-22", "the request's address is kept with the task", "delivery", "a_task_opens_a_pull_request_that_is_merged"),
    by("002-23", "hooks run only when there is work to submit", "delivery", "an_unchanged_task_gets_another_turn_and_then_needs_a_person"),
    by("002-24", "before_merge: gatekeeper: [qa, architecture], and all approve", "delivery", "quorum_all_requires_every_approval"),
    by("002-25", "a type without before_merge needs no reviewer", "hooks", "hooks_of_task_types_resolve_as_specified"),
    by("002-26", "the configuration as it is written runs, by import", "setup", OCTOPOID),
    differs("002-27", "a remediation has 20 turns", "delivery.md", "max_remediations: 3"),
    by("002-28", "a task that fails its hooks is marked needs_continuation", "delivery", "a_submit_hook_that_never_passes_needs_a_person_and_work_is_kept"),
    by("002-29", "branches and task are known to hooks", "delivery", "conditions_of_delivery_hooks_can_use_branches"),
    by("002-30", "hooks know the request, the agent, the commits and the context of earlier hooks", "delivery", "delivery_hooks_receive_the_pull_request_agent_and_earlier_context"),
    by("002-31", "a remediation that does not help ends with a person", "delivery", "the_same_failure_after_a_remediation_turn_needs_a_person"),
    // Task events and automation hooks.
    by("003-01", "task_created carries goal, deliverables, labels, priority", "seed_examples", PAYLOADS),
    by("003-02", "task_started carries context", "seed_examples", PAYLOADS),
    by("003-03", "task_completed carries result, artifacts", "seed_examples", PAYLOADS),
    by("003-04", "task_blocked carries reason, requiredKnowledge", "seed_examples", PAYLOADS),
    by("003-05", "task_deleted carries edgesRemoved", "seed_examples", PAYLOADS),
    by("003-06", "dependency_added carries fromId, toId, edgeType", "seed_examples", PAYLOADS),
    by("003-07", "dependency_removed carries edgeId, fromId, toId", "seed_examples", PAYLOADS),
    by("003-08", "dependency_satisfied carries dependentTaskId, completedTaskId", "seed_examples", PAYLOADS),
    by("003-09", "every event has timestamp, type, task and who triggered it", "seed_examples", "every_event_has_a_timestamp_a_task_and_an_actor"),
    by("003-10", "create_task and update_task actions", "seed_examples", "hook_actions_complete_and_create_tasks"),
    by("003-11", "execute_workflow runs a workflow", "seed_examples", "a_workflow_runs_step_by_step"),
    by("003-12", "log writes an event under the hook's own name", "seed_examples", "events_logged_by_a_hook_carry_the_name_of_the_hook"),
    by("003-13", "hook names are unique", "hooks", "a_project_hook_cannot_have_the_name_of_a_users_hook"),
    by("003-14", "a hook follows one or several events", "seed_examples", "a_hook_runs_at_the_event_given_in_the_configuration"),
    by("003-15", "lower priority runs first; 0 is a priority; 100 is the default", "seed_examples", "low_priorities_run_first_and_0_is_a_priority"),
    by("003-16", "enabled: false switches a hook off", "seed_examples", "enabling_or_disabling_a_hook_overrides_the_configuration"),
    by("003-17", "metadata: description, author, version", "seed_examples", "the_description_author_and_version_of_a_hook_are_shown"),
    by("003-18", "events come after the operation succeeded, and their hooks at once", "seed_examples", "effects_of_a_command_are_logged_directly_after_its_event"),
    by("003-19", "a hook that fails stops no other, and is a hook_error", "seed_examples", "a_failing_hook_stops_no_other"),
    by("003-20", "an action that fails stops no other, and is an action_error", "seed_examples", "a_failing_action_stops_no_other"),
    by("003-21", "an error of a hook or action does not fail the command", "seed_examples", "a_failing_action_stops_no_other"),
    by("003-22", "auto-create-review-task: the example's review task", "seed_examples", "an_agents_completed_task_gets_a_review"),
    by("003-23", "auto-create-review-task: only agents' tasks", "seed_examples", "other_tasks_get_no_review_and_no_metrics"),
    by("003-24", "auto-create-review-task: reviews are not reviewed", "seed_examples", "reviews_are_not_reviewed"),
    by("003-25", "check-dependency-satisfaction: ready when the last dependency completes, not before", "seed_examples", "a_task_is_ready_when_its_last_dependency_completes"),
    by("003-26", "track-agent-task-lifecycle: durationMs and the rest", "seed_examples", "metrics_of_an_agents_task_have_its_duration"),
    by("003-27", "track-agent-task-lifecycle: null without a start", "seed_examples", "a_task_that_was_never_started_has_no_duration"),
    by("003-28", "the built-in hooks are on, with priorities 10, 20 and 50", "seed_examples", "the_built_in_hooks_are_on_in_the_documented_order"),
    by("003-29", "data/automation-hooks.json is read", "seed_examples", "the_automation_hooks_file_of_the_specification_is_imported"),
    by("003-30", "its enabled and priority hold", "seed_examples", "imported_enabled_priority_and_event_settings_apply"),
    by("003-31", "the file as it is written acts on its events, by import", "setup", "automation_hooks_of_the_seed_act_on_their_events"),
    by("003-32", "hooks are listed, and found by name", "seed_examples", "an_unknown_hook_cannot_be_enabled_disabled_or_shown"),
    differs("003-33", "hooks are functions, registered and unregistered by a program", DIFFERENCES, "registered by a program"),
    differs("003-34", "less than 10 ms a hook", "benchmarks.md", "A command with one hook"),
    by("003-35", "a hook returns a list of actions", "seed_examples", "a_printed_list_of_actions_takes_effect"),
    by("003-36", "an action that fails stops no other", "seed_examples", "an_invalid_action_does_not_prevent_other_actions"),
    by("003-37", "actions are carried out after the hooks of an event", "seed_examples", "actions_apply_after_all_hooks_of_the_event"),
    // Stop hooks over MCP.
    by("004-01", "hook_register: its arguments and its answer", "mcp", "hooks_are_registered_listed_and_cleared"),
    by("004-02", "hook_list: its arguments and its answer", "mcp", "hooks_are_registered_listed_and_cleared"),
    by("004-03", "hook_clear: its arguments and its answer", "mcp", "hooks_are_registered_listed_and_cleared"),
    by("004-04", "hook_evaluate: its arguments and its answer", "mcp", "hook_evaluate_maps_promises_to_actions"),
    by("004-05", "default: COMPLETE, ESCALATE, BLOCKED, then validation, then continue", "mcp", PRESETS),
    by("004-06", "validation: all pass completes, some fail continues with feedback, none continues", "mcp", PRESETS),
    by("004-07", "promise: COMPLETE completes, ESCALATE and BLOCKED escalate, nothing continues", "mcp", PRESETS),
    by("004-08", "registration order; complete and escalate stop; the last continue counts", "mcp", "hooks_are_evaluated_in_registration_order"),
    by("004-09", "disabled hooks are skipped", "mcp", CONTEXT),
    by("004-10", "a hook that fails escalates, with the error", "mcp", "a_stop_hook_that_fails_escalates"),
    by("004-11", "no hooks registered: continue, and says so", "mcp", "a_loop_without_a_registered_hook_ends_by_the_stop_when_of_the_project"),
    by("004-12", "the typical flow, from task_get to hook_clear", "mcp", "an_iteration_loop_runs_from_task_to_completion"),
    by("004-13", "a real agent leads the flow", "agents", "claude_runs_its_own_loop_with_the_mcp_tools"),
    by("004-14", "completionPromises: which promises end the loop", "hookloop-engine/external_sessions", "a_loop_accepts_only_the_promises_given_at_its_start"),
    by("004-15", "maxIterations ends the loop, and 0 blocks nothing", "mcp", "a_loop_of_no_iterations_is_an_argument_error_and_blocks_nothing"),
    by("004-16", "tasks are named by taskId", "mcp", "every_tool_that_takes_a_task_takes_task_id_and_id"),
    by("004-17", "custom hooks get the agent's context and answer action, reason, nextPrompt", "mcp", CONTEXT),
    by("004-18", "pattern: a TDD loop", "sessions", "a_stop_when_command_decides_when_a_tdd_loop_ends"),
    by("004-19", "pattern: security remediation gives up after ten iterations", "sessions", "security_remediation_gives_up_after_ten_iterations"),
    by("004-20", "pattern: a checkpoint is made", "sessions", "a_checkpoint_is_recorded_and_in_the_next_prompt"),
    by("004-21", "checkpoints are found again", "mcp", "checkpoints_are_created_and_resumed"),
    by("004-22", "registrations outlive the server (there: lost)", "mcp", "registrations_outlive_the_server"),
    differs("004-23", "custom hooks are callbacks in JavaScript", DIFFERENCES, "a command at `stop_when`"),
    by("004-24", "a promise behind a sentence completes the iteration", "sessions", "a_promise_behind_text_in_the_last_line_is_a_claim_where_gates_judge_it"),
];

#[test]
fn every_requirement_is_shown_by_a_test_or_differs_for_a_documented_reason() {
    let mut wrong = Vec::new();
    for Requirement { id, text, shown } in &TABLE {
        match shown {
            Shown::By { binary, test } => {
                let needle = format!("fn {test}(");
                if !sources(binary).iter().any(|source| source.contains(&needle)) {
                    wrong.push(format!("{id} ({text}): there is no test `{test}` in {binary}"));
                }
            }
            Shown::Differs { page, words } => {
                let path = root().join("docs").join(page);
                let page_text = fs::read_to_string(&path).unwrap_or_default();
                if !page_text.contains(words) {
                    wrong.push(format!("{id} ({text}): docs/{page} does not say `{words}`"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn requirement_ids_are_unique_and_sorted() {
    let ids: Vec<&str> = TABLE.iter().map(|requirement| requirement.id).collect();
    assert!(ids.is_sorted(), "{ids:?}");
    assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), COUNT);
    let seeds: BTreeSet<&str> = ids.iter().map(|id| &id[..3]).collect();
    assert_eq!(seeds, BTreeSet::from(["000", "001", "002", "003", "004"]));
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Returns the sources of a test binary: a file, or all files of a directory.
fn sources(binary: &str) -> Vec<String> {
    let (package, name) = binary.split_once('/').unwrap_or(("hookloop", binary));
    let tests = root().join("crates").join(package).join("tests");
    let file = tests.join(format!("{name}.rs"));
    let files = match fs::read_dir(tests.join(name)) {
        Ok(entries) => entries.map(|entry| entry.unwrap().path()).collect(),
        Err(_) => vec![file],
    };
    let is_source = |file: &PathBuf| file.extension().is_some_and(|ending| ending == "rs");
    files.into_iter().filter(is_source).map(|file| fs::read_to_string(file).unwrap()).collect()
}
