//! A terminal that tests control through tmux.

use std::path::PathBuf;

use hookloop_testkit::eventually;

use crate::cli::{DEADLINE, Project};

const OPTIONS: &str = "set -g status off
set -g escape-time 0
set -g default-terminal tmux-256color
";
/// The prompt of the idle shell.
const PROMPT: &str = "ready$";

/// A terminal with a shell in a project.
pub(crate) struct Tmux<'p> {
    project: &'p Project,
    socket: PathBuf,
}

impl<'p> Tmux<'p> {
    pub(crate) fn new(project: &'p Project, width: u16, height: u16) -> Tmux<'p> {
        Tmux::named(project, "tmux", (width, height))
    }

    /// Starts one of several terminals.
    pub(crate) fn named(project: &'p Project, name: &str, (width, height): (u16, u16)) -> Tmux<'p> {
        let options = project.home().join("tmux.conf");
        std::fs::write(&options, OPTIONS).unwrap();
        let tmux = Tmux { project, socket: project.home().join(name) };
        let (width, height) = (width.to_string(), height.to_string());
        let shell = format!("env PS1='{PROMPT} ' bash --norc --noprofile -i");
        let options = options.display().to_string();
        tmux.tell(&["-f", &options, "new-session", "-d", "-x", &width, "-y", &height, &shell]);
        tmux.see(PROMPT);
        tmux
    }

    fn tell(&self, args: &[&str]) -> String {
        let mut command = self.project.command("tmux");
        command.env("LC_ALL", "C.UTF-8").arg("-u").arg("-S").arg(&self.socket).args(args);
        let output = command.output().unwrap();
        assert!(output.status.success(), "{args:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Types a line and presses Enter.
    pub(crate) fn line(&self, line: &str) {
        self.tell(&["send-keys", "-l", line]);
        self.keys(&["Enter"]);
    }

    pub(crate) fn text(&self, text: &str) {
        self.tell(&["send-keys", "-l", text]);
    }

    /// Presses keys, given by their tmux names.
    pub(crate) fn keys(&self, keys: &[&str]) {
        self.tell(&[&["send-keys"], keys].concat());
    }

    pub(crate) fn paste(&self, text: &str) {
        self.tell(&["set-buffer", text]);
        self.tell(&["paste-buffer", "-p"]);
    }

    pub(crate) fn resize(&self, width: u16, height: u16) {
        self.tell(&["resize-window", "-x", &width.to_string(), "-y", &height.to_string()]);
    }

    /// Returns the text on the terminal.
    pub(crate) fn seen(&self) -> String {
        self.tell(&["capture-pane", "-p"])
    }

    /// Waits until a text is on the terminal; returns the whole text.
    pub(crate) fn see(&self, text: &str) -> String {
        self.see_that(text, |seen| seen.contains(text))
    }

    pub(crate) fn see_that(&self, what: &str, is_there: impl Fn(&str) -> bool) -> String {
        let mut last = String::new();
        let end = std::time::Instant::now() + crate::cli::DEADLINE;
        while std::time::Instant::now() < end {
            last = self.seen();
            if is_there(&last) {
                return last;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        panic!("timed out waiting for `{what}`:\n{last}");
    }

    /// Returns whether the alternate screen is active.
    pub(crate) fn has_screen(&self) -> bool {
        self.tell(&["display-message", "-p", "#{alternate_on}"]).trim() == "1"
    }

    /// Returns the modes of the terminal without its size, as `stty` in the shell prints them.
    pub(crate) fn modes(&self) -> String {
        let file = self.project.root().join("modes");
        let _ = std::fs::remove_file(&file);
        self.line("stty -a > modes.new && mv modes.new modes");
        let modes = eventually("the modes", DEADLINE, || std::fs::read_to_string(&file).ok());
        modes.lines().skip(1).collect::<Vec<_>>().join("\n")
    }

    /// Checks that the alternate screen is closed, the cursor is visible, and the modes are
    /// restored.
    pub(crate) fn assert_left(&self, modes: &str) {
        self.see_that("the shell", |seen| {
            seen.lines().rfind(|line| !line.is_empty()).is_some_and(|line| line.starts_with(PROMPT))
        });
        assert!(!self.has_screen(), "{}", self.seen());
        let state = "#{cursor_flag} #{keypad_flag} #{mouse_any_flag} #{insert_flag}";
        assert_eq!(self.tell(&["display-message", "-p", state]).trim(), "1 0 0 0");
        assert_eq!(self.modes(), modes);
    }

    /// Returns the process id of hookloop in this terminal.
    pub(crate) fn program(&self) -> i32 {
        let shell = self.tell(&["display-message", "-p", "#{pane_pid}"]);
        eventually("a program", DEADLINE, || {
            let output =
                self.project.command("pgrep").args(["-P", shell.trim(), "hookloop"]).output();
            String::from_utf8(output.unwrap().stdout).unwrap().trim().parse().ok()
        })
    }

    pub(crate) fn signal(&self, name: &str) {
        let program = self.program().to_string();
        let killed = self.project.command("kill").args([&format!("-{name}"), &program]).status();
        assert!(killed.unwrap().success());
    }
}

impl Drop for Tmux<'_> {
    fn drop(&mut self) {
        let mut command = self.project.command("tmux");
        let _ = command.arg("-S").arg(&self.socket).arg("kill-server").output();
    }
}
