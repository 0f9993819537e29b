//! The environment of a fleet: servers, a forge over a bare repository, machines with clones of it.

use std::fs;
use std::io::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use hookloop_testbed::github::GitHub;
use hookloop_testbed::{Cluster, Server, poll};
use serde_json::json;

use super::machine::Machine;

/// Name of the project on the store.
pub(crate) const PROJECT: &str = "night";
/// URL of the remote, which git maps to the repository on disk.
const URL: &str = "https://github.com/acme/app.git";

/// Gate for every commit of the base: each task's file contains its name, and there are no conflict
/// markers. It starts no process, because it runs very often.
pub(crate) const GATE: &str = r#"for file in done/*.txt; do
  [ -e "$file" ] || continue
  read -r said < "$file" || exit 2
  [ "done/$said.txt" = "$file" ] || { echo "$file says $said" >&2; exit 2; }
done
while read -r line; do
  case $line in '<<<<<<<'*|'======='*|'>>>>>>>'*|'|||||||'*) echo "shared.txt: $line" >&2; exit 2;; esac
done < shared.txt
"#;

/// Addresses and directories that the machines share.
pub(crate) struct Site {
    pub(crate) home: PathBuf,
    pub(crate) store: String,
    pub(crate) monitors: Vec<String>,
    pub(crate) remote: PathBuf,
    pub(crate) url: String,
    pub(crate) forge: SocketAddr,
}

pub(crate) struct Yard {
    // Dropped in this order.
    pub(crate) machines: Vec<Machine>,
    /// The machine of the users, which has no worker.
    pub(crate) desk: Machine,
    pub(crate) forge: GitHub,
    pub(crate) cluster: Cluster,
    pub(crate) site: Site,
}

/// A task, and the script that its agent runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Task {
    pub(crate) id: String,
    pub(crate) priority: u64,
    pub(crate) depends_on: Vec<String>,
    /// Script for `sh`, run in the worktree.
    pub(crate) script: String,
}

/// Timeout for a cluster to form.
const FORMED: Duration = Duration::from_secs(60);

impl Yard {
    /// Creates machines w1, w2, … for a project with this configuration.
    pub(crate) fn new(home: &Path, machines: usize, config: &str) -> Yard {
        let cluster = Cluster::in_namespaces();
        let remote = home.join("remote.git");
        plant(home, &remote, config);
        let forge = GitHub::at(&remote, (cluster.network().here(), 0).into());
        let site = Site {
            home: home.to_owned(),
            store: cluster.urls().join(","),
            monitors: cluster.nodes().iter().map(Server::monitor_url).collect(),
            remote,
            url: URL.to_owned(),
            forge: forge.address(),
        };
        fs::create_dir(home.join("scripts")).unwrap();
        let machine = |name: &str| Machine::new(name, &site, cluster.network().netns());
        let desk = machine("desk");
        let machines = (1..=machines).map(|n| machine(&format!("w{n}"))).collect();
        Yard { machines, desk, forge, cluster, site }
    }

    /// Writes the agents' scripts and adds the tasks.
    pub(crate) fn add(&self, tasks: &[Task]) {
        let mut lines = String::new();
        for task in tasks {
            fs::write(self.scripts().join(&task.id), &task.script).unwrap();
            let goal = format!("Write done/{}.txt", task.id);
            let line = json!({
                "id": task.id, "goal": goal, "priority": task.priority, "depends_on": task.depends_on,
            });
            lines.push_str(&format!("{line}\n"));
        }
        // Servers that have just connected may not all count as online yet.
        let is_up = || {
            let status = self.desk.hookloop(&["status"]).output().unwrap();
            status.status.success().then_some(())
        };
        poll(FORMED, is_up).expect("the servers take a project");
        let mut import = self.desk.hookloop(&["task", "import", "-"]);
        let mut import = import.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        import.stdin.take().unwrap().write_all(lines.as_bytes()).unwrap();
        assert!(import.wait().unwrap().success(), "the tasks are added");
    }

    /// Returns the agent: it runs the script of its task and reports that the task is complete.
    pub(crate) fn agent(&self) -> String {
        let scripts = self.scripts();
        let scripts = scripts.display();
        format!(
            "command:cat > /dev/null; export SCRIPTS={scripts}; \
             sh -e {scripts}/$HOOKLOOP_TASK_ID >&2 || exit 1; echo '<promise>COMPLETE</promise>'"
        )
    }

    pub(crate) fn scripts(&self) -> PathBuf {
        self.site.home.join("scripts")
    }

    /// Runs git in the remote repository.
    pub(crate) fn at_remote(&self, args: &[&str]) -> String {
        git(&self.site.remote, args)
    }
}

/// Creates a repository with a first commit.
fn plant(home: &Path, remote: &Path, config: &str) {
    let seed = home.join("seed");
    fs::create_dir_all(&seed).unwrap();
    fs::write(seed.join("hookloop.yaml"), config).unwrap();
    fs::write(seed.join("gate.sh"), GATE).unwrap();
    fs::write(seed.join("shared.txt"), "").unwrap();
    git(&seed, &["init", "-q", "-b", "main"]);
    git(&seed, &["add", "."]);
    git(
        &seed,
        &["-c", "user.name=c", "-c", "user.email=c@example.invalid", "commit", "-qm", "start"],
    );
    git(home, &["clone", "-q", "--bare", "seed", &remote.display().to_string()]);
}

pub(crate) fn git(directory: &Path, args: &[&str]) -> String {
    let output = Command::new("git").args(args).current_dir(directory).output().unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "git {args:?}: {told}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}
