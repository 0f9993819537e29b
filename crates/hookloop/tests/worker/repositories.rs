//! Projects that a worker clones itself.

use std::fs;

use hookloop_testkit::{TestProject, run_git};
use serde_json::Value;

use crate::support::empty_project;
use crate::worker::{Working, is};

const AGENT: &str = "command:cat > /dev/null; echo done > $HOOKLOOP_TASK_ID.txt; echo '<promise>COMPLETE</promise>'";

/// A user with only a configuration that names a repository.
struct Nobody {
    project: TestProject,
}

impl Nobody {
    fn new(rest: &str) -> Nobody {
        let nobody = Nobody { project: empty_project() };
        let (remote, somebody) = (nobody.remote(), nobody.project.beside("somebody"));
        let [from, to] = [&remote, &somebody].map(|path| path.to_str().unwrap());
        nobody.project.git(&["init", "-q", "--bare", "-b", "trunk", from]);
        nobody.project.git(&["clone", "-q", from, to]);
        run_git(&somebody, &["checkout", "-qb", "trunk"]);
        for text in ["first", "second", "third"] {
            fs::write(somebody.join("a.txt"), text).unwrap();
            fs::write(somebody.join("hookloop.yaml"), "version: 1\ndelivery: {}\n").unwrap();
            run_git(&somebody, &["add", "."]);
            let who = ["-c", "user.name=s", "-c", "user.email=s@example.invalid"];
            run_git(&somebody, &[&who[..], &["commit", "-qm", text]].concat());
        }
        run_git(&somebody, &["push", "-q", "origin", "trunk"]);
        let url = format!("file://{}", remote.display());
        let config = format!(
            "version: 1\nprojects:\n  shop: {{repository: '{url}', depth: 1{rest}}}\ngates: none\n"
        );
        nobody.project.write_user_config(&config);
        nobody
    }

    fn remote(&self) -> std::path::PathBuf {
        self.project.beside("remote.git")
    }

    fn copy(&self) -> std::path::PathBuf {
        self.project.home().join(".local/state/hookloop/_copies/shop")
    }

    fn work(&self) -> Vec<Value> {
        Working::start(self.project.json_command(&["worker", "--agent", AGENT, "--until-idle"]))
            .end()
    }
}

#[test]
fn a_worker_clones_a_configured_repository_and_delivers_from_the_clone() {
    let nobody = Nobody::new(", weight: 2");
    assert_eq!(nobody.work(), Vec::<Value>::new(), "no task is ready");
    let copy = nobody.copy();
    assert_eq!(fs::read_to_string(copy.join("a.txt")).unwrap(), "third");
    assert_eq!(run_git(&copy, &["rev-list", "--count", "HEAD"]), "1", "the depth is not 1");
    assert_eq!(run_git(&copy, &["status", "--porcelain"]), "");
    for id in ["t1", "t2"] {
        let add = ["-C", copy.to_str().unwrap(), "task", "add", "goal", "--id", id];
        assert!(nobody.project.json_command(&add).output().unwrap().status.success());
    }
    let said = nobody.work();
    let merged = said.iter().filter(|told| is(told, "merge_result") && told["result"] == "merged");
    assert_eq!(merged.count(), 2, "{said:?}");
    for id in ["t1", "t2"] {
        assert_eq!(run_git(&nobody.remote(), &["show", &format!("trunk:{id}.txt")]), "done");
    }
    // The next worker updates the clone first.
    nobody.work();
    assert_eq!(fs::read_to_string(copy.join("t2.txt")).unwrap(), "done\n");
}

#[test]
fn project_mistakes_in_the_users_file_are_reported_with_their_line() {
    for (rest, why) in [
        (", path: /x", "either `path` or `repository`"),
        (", weight: 0", "`weight` is 1 to 100"),
        (", speed: 3", "unknown key `speed`"),
    ] {
        let nobody = Nobody::new(rest);
        let output =
            nobody.project.json_command(&["worker", "shop", "--agent", AGENT]).output().unwrap();
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && told.contains(why), "{rest}: {told}");
        assert!(told.contains("config.yaml:3"), "{told}");
    }
}
