//! The context of delivery hooks: the delivery, and the context of other hooks.

use std::fs;

use serde_json::{Value, json};

use crate::delivery_project::{DeliveryProject, GREEN};

/// Returns a hook command that stores its input in a file with its name.
fn keeps(name: &str) -> String {
    format!(
        "cat > $HOME/{name}.json; printf '%s|%s' {{{{pr_url}}}} {{{{commits}}}} > $HOME/{name}.vars"
    )
}

/// Returns the input and the variables that a hook of that name has stored.
fn kept(project: &DeliveryProject, name: &str) -> (Value, String) {
    let home = project.root().parent().unwrap().join("home");
    let input = fs::read_to_string(home.join(format!("{name}.json"))).unwrap();
    let variables = fs::read_to_string(home.join(format!("{name}.vars"))).unwrap();
    (serde_json::from_str(&input).unwrap(), variables)
}

#[test]
fn delivery_hooks_receive_the_pull_request_agent_and_earlier_context() {
    let answer = r#"{"hookloop":{"context":{"build":7,"pr_title":"first"}}}"#;
    let later = r#"{"hookloop":{"context":{"pr_title":"second"}}}"#;
    let config = format!(
        "delivery: {{}}
room: here
hooks:
  before_submit:
    - {{name: early, command: \"{early}\"}}
    - create_pr
    - {{name: maker, answers: json, command: \"{maker}; echo '{answer}'\"}}
    - {{name: other, answers: json, command: \"echo '{later}'\"}}
    - {{name: last, command: \"{last}\", when: \"pr_url.endsWith('/1') && commits == 1\"}}
  after_submit:
    - {{name: first, command: \"echo '{answer}'\"}}
    - {{name: after, command: \"{after}\"}}
  before_merge:
    - {{name: green, answers: json, command: \"{GREEN} && echo '{answer}'\"}}
    - {{name: gate, command: \"{gate}\"}}
  after_merge:
    - {{name: done, command: \"{done}\", when: \"agent != '' && pr_url.endsWith('/1')\"}}
",
        early = keeps("early"),
        maker = keeps("maker"),
        last = keeps("last"),
        after = keeps("after"),
        gate = keeps("gate"),
        done = keeps("done"),
        answer = answer.replace('"', "\\\""),
        later = later.replace('"', "\\\""),
    );
    let (project, forge) = DeliveryProject::on_forge(&config, &[("a.txt", "a\n")]);
    project.add("t1", &[]);
    project.does("t1", 1, "echo work > work.txt");
    let ran = project.run_tasks();
    assert_eq!(project.state("t1"), "submitted", "{}", ran.stderr);
    assert_eq!(project.merge()["t1"].0, "merged");

    let url = ran.all("submission_evaluated")[0]["submission"]["url"].as_str().unwrap().to_owned();
    let head = forge.pulls()[0].head.clone();
    let (early, variables) = kept(&project, "early");
    let delivery = &early["hookloop"]["delivery"];
    assert_eq!((&delivery["url"], &delivery["number"]), (&Value::Null, &Value::Null));
    assert_eq!((&delivery["head"], &delivery["commits"]), (&json!(head), &json!(1)));
    assert_eq!((variables.as_str(), &early["hookloop"]["context"]), ("|1", &json!({})));

    let merged = json!({"build": 7, "pr_title": "second"});
    for (name, context) in [
        ("last", merged),
        ("after", json!({"build": 7, "pr_title": "first"})),
        ("gate", json!({"build": 7, "pr_title": "first"})),
        ("done", json!({})),
    ] {
        let (input, variables) = kept(&project, name);
        let delivery = &input["hookloop"]["delivery"];
        assert_eq!((&delivery["url"], &delivery["number"]), (&json!(url), &json!(1)), "{name}");
        assert_eq!((&delivery["head"], &delivery["commits"]), (&json!(head), &json!(1)), "{name}");
        assert_eq!(delivery["agent"], project.agent(), "{name}");
        assert_eq!(variables, format!("{url}|1"), "{name}");
        let mut found = input["hookloop"]["context"].clone();
        // The built-in step adds the address and number of the request.
        for own in ["pr_url", "url", "number", "head", "branch"] {
            found.as_object_mut().unwrap().remove(own);
        }
        assert_eq!(found, context, "{name}");
    }
    let (maker, _) = kept(&project, "maker");
    assert_eq!(maker["hookloop"]["context"]["pr_url"], url);
}

/// A condition on a request that does not exist yet has no value, so the gate blocks.
#[test]
fn a_hook_condition_on_a_missing_pull_request_blocks_the_submission() {
    let config = "delivery: {}
hooks:
  before_submit:
    - {name: early, command: 'true', when: \"pr_url != ''\"}
    - create_pr
";
    let project = DeliveryProject::new(config, &[("a.txt", "a\n")]);
    project.add("t1", &[]);
    project.does("t1", 1, "echo work > work.txt");
    let ran = project.run_tasks();
    assert_ne!(project.state("t1"), "submitted");
    let reasons: Vec<&str> =
        ran.all("hook_ran").iter().filter_map(|ran| ran["reason"].as_str()).collect();
    assert!(reasons.iter().any(|why| why.contains("`pr_url` has no value here")), "{reasons:?}");
}

/// A hook that passed on the same files does not run again; later hooks still get its context.
#[test]
fn context_of_a_reused_hook_result_reaches_later_hooks() {
    let config = format!(
        "delivery: {{}}
room: here
hooks:
  before_submit:
    - {{name: maker, answers: json, command: \"echo . >> $HOME/made; echo '{answer}'\"}}
    - {{name: picky, command: \"test -f $HOME/asked || {{ touch $HOME/asked; exit 2; }}\"}}
    - {{name: last, command: \"{last}\"}}
",
        answer = r#"{\"hookloop\":{\"context\":{\"build\":7}}}"#,
        last = keeps("last"),
    );
    let project = DeliveryProject::new(&config, &[("a.txt", "a\n")]);
    project.add("t1", &[]);
    project.does("t1", 1, "echo work > work.txt");
    let ran = project.run_tasks();
    assert_eq!(ran.submitted(), ["block", "pass"], "{}", ran.stderr);
    let home = project.root().parent().unwrap().join("home");
    assert_eq!(fs::read_to_string(home.join("made")).unwrap(), ".\n", "it ran once");
    assert_eq!(kept(&project, "last").0["hookloop"]["context"], json!({"build": 7}));
}
