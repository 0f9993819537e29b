//! Answers, approvals and dismissals: only people decide, and each decision is about one problem.

use hookloop_testkit::eventually;
use serde_json::json;

use crate::cli::{DEADLINE, Project, fields};
use crate::inbox::problems::AGENT;
use crate::inbox::{blocked, key, keys};

#[test]
fn an_answer_is_in_the_prompt_of_the_tasks_next_session() {
    let project = Project::new();
    blocked(&project, "a", "Parse it", "which encoding?");
    let found = key(&project);
    project.fails(2, &["inbox", "answer", "a", " "]);
    let answered = project.json(&["inbox", "answer", &found, "It is latin-1."]);
    assert_eq!(fields(&answered), ["decision", "key", "next", "state"].into());
    assert_eq!((&answered["decision"], &answered["state"]), (&json!("answered"), &json!("ready")));
    assert_eq!(keys(&project), [""; 0]);
    project.write("says.txt", "<promise>COMPLETE</promise>\n");
    let ran = project.run(&["run", "--tasks", "--agent", AGENT]);
    assert_eq!(ran.code, 6, "there is no gate: {ran:?}");
    let prompt = std::fs::read_to_string(project.root().join("prompts.txt")).unwrap();
    let told =
        "# From the user (tester)\n\nQuestion: \"which encoding?\"\nAnswer: It is latin-1.\n";
    assert!(prompt.contains(told), "{prompt}");
    // The problem is solved, and a late answer is refused.
    let why = project.fails(1, &["inbox", "answer", &found, "or not"]);
    assert!(why.contains("nothing that needs a human"), "{why}");
}

#[test]
fn only_one_of_concurrent_answers_to_a_problem_is_accepted() {
    let project = Project::new();
    for round in 0..5 {
        blocked(&project, &format!("t{round}"), "Goal", "why");
        let found = key(&project);
        let people: Vec<_> = (0..4)
            .map(|n| {
                project
                    .hookloop(&["inbox", "answer", &found, &format!("word {n}")])
                    .spawn()
                    .unwrap()
            })
            .collect();
        let codes: Vec<_> = people.into_iter().map(|mut one| one.wait().unwrap().code()).collect();
        assert_eq!(codes.iter().filter(|code| **code == Some(0)).count(), 1, "{codes:?}");
    }
    assert_eq!(project.events_of("task_noted").len(), 5);
    assert_eq!(project.events_of("task_unblocked").len(), 5);
}

#[test]
fn a_paused_session_has_the_answer_in_its_next_prompt() {
    let project = Project::new();
    project.write("says.txt", "working\n");
    let mut running = project
        .hookloop(&["run", "Do it", "--agent", AGENT])
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let prompts = project.root().join("prompts.txt");
    eventually("a first turn", DEADLINE, || prompts.exists().then_some(()));
    eventually("a session", DEADLINE, || {
        let paused = project.run(&["pause"]);
        (paused.code == 0).then_some(())
    });
    running.wait().unwrap();
    let found = key(&project);
    assert_eq!(project.json(&["inbox", "show", &found])["type"], "session_paused");
    let answered = project.json(&["inbox", "answer", &found, "Use the other one."]);
    let next = answered["next"].as_str().unwrap().to_owned();
    assert!(next.starts_with("hookloop resume "), "{next}");
    assert_eq!(keys(&project), [""; 0]);
    project.write("says.txt", "<promise>COMPLETE</promise>\n");
    std::fs::remove_file(&prompts).unwrap();
    assert_eq!(project.shell(&next).code, 6, "there is no gate");
    let prompt = std::fs::read_to_string(&prompts).unwrap();
    assert!(prompt.contains("Use the other one."), "{prompt}");
}

#[test]
fn a_dismissed_problem_is_not_listed_and_its_task_stays_blocked() {
    let project = Project::new();
    blocked(&project, "a", "Goal", "why");
    let found = key(&project);
    project.ok(&["inbox", "dismiss", "a"]);
    assert_eq!((keys(&project).len(), project.state_of("a").as_str()), (0, "blocked"));
    assert_eq!(project.json(&["inbox", "show", &found])["dismissed"], true);
    assert_eq!(project.json(&["rebuild"])["equal"], true);
    assert_eq!(keys(&project), [""; 0]);
    // A dismissed problem can still be answered; if it occurs again, it is a new problem.
    project.ok(&["inbox", "answer", &found, "go on"]);
    project.ok(&["task", "block", "a", "--reason", "again"]);
    assert_ne!(key(&project), found);
}

#[test]
fn a_task_that_was_not_submitted_cannot_be_approved() {
    let project = Project::new();
    blocked(&project, "a", "Goal", "why");
    let found = key(&project);
    let why = project.fails(1, &["inbox", "approve", "a"]);
    assert!(why.contains("nothing to approve"), "{why}");
    assert!(why.contains(&format!("run `hookloop inbox answer {found}")), "{why}");
    assert_eq!(project.state_of("a"), "blocked");
}

/// Every decision is refused for an agent's session, with every form of its environment variable.
#[test]
fn an_agent_cannot_answer_approve_or_dismiss_a_problem() {
    let project = Project::new();
    blocked(&project, "a", "Goal", "why");
    let before = project.events().len();
    for session in ["k3m9x2", "not a session", ""] {
        for args in [
            &["inbox", "answer", "a", "go on"][..],
            &["inbox", "approve", "a"],
            &["inbox", "dismiss", "a"],
        ] {
            let output = project.hookloop(args).env("HOOKLOOP_SESSION", session).output().unwrap();
            let told = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(1), "{args:?}: {told}");
            assert!(told.contains("only a person can"), "{told}");
        }
        // Agents may list problems.
        let output =
            project.hookloop(&["inbox", "list"]).env("HOOKLOOP_SESSION", session).output().unwrap();
        assert!(output.status.success());
    }
    assert_eq!(project.events().len(), before);
    // A real agent that tries it in its turn is refused, too.
    project.add("Try", &["--id", "b"]);
    let tries = "command:hookloop inbox answer a 'go on' > said.txt 2>&1; \
        env -i HOME=$HOME $(command -v hookloop) inbox dismiss a >> said.txt 2>&1; \
        (env -i HOME=$HOME setsid $(command -v hookloop) inbox dismiss a >> said.txt 2>&1; touch over) & \
        while [ ! -f over ]; do sleep 0.01; done; echo '<promise>COMPLETE</promise>'";
    assert_eq!(project.run(&["run", "--task", "b", "--agent", tries]).code, 6);
    let said = std::fs::read_to_string(project.root().join("said.txt")).unwrap();
    assert_eq!(said.matches("only a person can").count(), 3, "{said}");
    assert_eq!(
        (key(&project).starts_with("task:a@"), project.state_of("a").as_str()),
        (true, "blocked")
    );
}
