//! Attempts of an agent to pass as a person. Each one here is refused; docs/threat-model.md lists
//! the attempts that are not.

use crate::authority::stage::{Actor, AuthorityProject};

const TRUST: &str = "hookloop hooks trust --yes";
const DISABLE: &str = "hookloop hooks disable green";

/// Checks that a command reserved for a person is refused when an agent runs it through `detour`.
fn check(detour: impl Fn(&str) -> String) {
    let stage = AuthorityProject::new();
    let before = stage.guarded();
    let lines: Vec<String> = [TRUST, DISABLE].iter().map(|line| detour(line)).collect();
    for (line, probed) in lines.iter().zip(stage.probe(Actor::SessionAgent, &lines)) {
        assert!(probed.is_refused(), "`{line}`: {probed:?}");
    }
    assert_eq!(before, stage.guarded());
}

/// Returns a shell line that waits for a file written by a background process.
fn waiting(start: &str) -> String {
    format!(
        "rm -f told; {start}\nfor i in $(seq 200); do [ -s told ] && break; sleep 0.05; done; cat told"
    )
}

#[test]
fn an_agent_is_recognized_after_clearing_its_environment() {
    check(|line| format!("env -i HOME=\"$HOME\" PATH=\"$PATH\" USER=ada {line}"));
}

#[test]
fn an_agent_is_recognized_in_a_new_process_session() {
    check(|line| format!("setsid --wait {line}"));
}

#[test]
fn an_agent_is_recognized_after_a_double_fork() {
    check(|line| waiting(&format!("( ( setsid sh -c 'sleep 0.2; {line} >told 2>&1' & ) & )")));
}

#[test]
fn an_agent_is_recognized_in_user_and_pid_namespaces() {
    check(|line| format!("unshare -Urpf {line}"));
    check(|line| format!("unshare -Urpf --mount-proc {line}"));
}

#[test]
fn an_agent_is_recognized_in_a_new_terminal() {
    check(|line| waiting(&format!("tmux -L own$$ new-session -d \"{line} >told 2>&1\"")));
}

#[test]
fn an_agent_is_recognized_with_a_masked_proc() {
    check(|line| format!("unshare -Urm sh -c 'mount -t tmpfs none /proc && {line}'"));
    // Replaces the `stat` file of the parent by that of process 1.
    check(|line| {
        format!("unshare -Urm sh -c 'mount --bind /proc/1/stat /proc/$PPID/stat && {line}'")
    });
    check(|line| {
        format!("unshare -Urm sh -c 'mkdir -p empty; mount --bind empty /proc/$PPID && {line}'")
    });
}

#[test]
fn an_agent_is_recognized_with_another_state_directory() {
    check(|line| format!("XDG_STATE_HOME=$PWD/elsewhere {line}"));
    check(|line| format!("HOME=$PWD/elsewhere {line}"));
}

/// Paths of state directories are compared after resolution, even before the path exists.
#[test]
fn an_agent_is_recognized_with_an_unresolved_state_directory_path() {
    let stage = AuthorityProject::new();
    let detour = "export XDG_STATE_HOME=$HOME/new/../.local/state; mkdir -p $HOME/other; cd $HOME/other; \
        printf 'version: 1\\n' > hookloop.yaml";
    let lines: Vec<String> =
        ["rebuild", "dispatch", "merge", "worker --agent command:true --until-idle"]
            .iter()
            .map(|command| format!("{detour}; hookloop {command}"))
            .collect();
    for (line, probed) in lines.iter().zip(stage.probe(Actor::SessionAgent, &lines)) {
        assert!(probed.is_refused(), "`{line}`: {probed:?}");
    }
}

/// A parent process that dropped its privileges does not stop the search for further parents.
#[test]
fn an_agent_of_root_is_recognized_behind_a_parent_of_another_user() {
    if !rustix::process::getuid().is_root() {
        // Only root can change to another user.
        check(|line| line.to_owned());
        return;
    }
    check(|line| {
        let python = "import os,sys\npid=os.fork()\nif pid==0:\n  import time; time.sleep(0.3); os.execvp('sh',['sh','-c',sys.argv[1]])\nos.setuid(65534)\nos.waitpid(pid,0)";
        format!("python3 -c \"{python}\" '{line}'")
    });
}

/// Test suites run hookloop on their own projects. With a separate state directory, an agent may
/// decide there.
#[test]
fn an_agent_may_run_all_commands_in_a_project_with_separate_state() {
    let stage = AuthorityProject::new();
    let set_up =
        "export HOME=$(mktemp -d) && cd \"$HOME\" && printf 'version: 1\\n' > hookloop.yaml";
    let lines = [
        format!("{set_up} && hookloop hooks trust --yes"),
        format!("{set_up} && hookloop task add x --id x && hookloop task complete x"),
    ];
    for probed in stage.probe(Actor::SessionAgent, &lines) {
        assert_eq!(probed.code, 0, "{probed:?}");
    }
}
