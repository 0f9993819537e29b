//! Checks of agents: installed, allowed, and logged in as far as files show it.

use hookloop_agents::login::{LoginState, login_state};
use hookloop_agents::readiness::NotReady;
use hookloop_agents::repository;
use hookloop_agents::repository::{Unfit, Wanted};
use hookloop_agents::version::{check_line, version_line};
use hookloop_config::agents::profile::any_install_command;
use hookloop_config::effective::Rules;
use hookloop_hooks::runner::Runner;

use super::{Finding, Group, Mend};

/// Checks the installed agents, concurrently.
pub fn examine_agents(rules: &Rules, runner: &Runner) -> Vec<Finding> {
    let names = repository::present(rules, runner.ground());
    if names.is_empty() {
        let (install, others) = any_install_command();
        let message = format!("no agent is installed; hookloop also knows {others}");
        return vec![Group::Agents.warning("agents", message).typed(install)];
    }
    std::thread::scope(|scope| {
        let asked: Vec<_> =
            names.iter().map(|name| scope.spawn(|| examine(name, rules, runner))).collect();
        asked.into_iter().flat_map(|asked| asked.join().unwrap_or_default()).collect()
    })
}

fn examine(name: &str, rules: &Rules, runner: &Runner) -> Vec<Finding> {
    let about = format!("agent {name}");
    let fit = match repository::fit(rules, name, &Wanted::default(), runner.ground()) {
        Ok(fit) => fit,
        Err(error) => {
            let finding = Group::Agents.error(&about, error.to_string());
            let hint = error.hint();
            return vec![match (hint, &error) {
                // The hint names the rule and the person to ask.
                (Some(hint), Unfit::Forbidden(_)) => finding.mended_by(Mend::Do(hint)),
                (Some(command), _) => finding.typed(command),
                (None, _) => finding,
            }];
        }
    };
    // Both commands run concurrently, so that an agent that hangs costs one timeout, not two.
    let (line, login) = std::thread::scope(|scope| {
        let login = scope.spawn(|| login_state(&fit.settings, runner));
        (version_line(&fit.settings, runner), login.join())
    });
    if let Err(old) = check_line(&fit.settings, line.as_deref()) {
        let error = NotReady::too_old(&fit.settings, old);
        return vec![Group::Agents.error(&about, error.to_string()).typed(error.hint())];
    }
    let version = line.unwrap_or_else(|| "it does not tell its version".to_owned());
    let message = format!("{version}; it may {}", fit.settings.powers());
    let mut findings = vec![match fit.ignored.as_slice() {
        [] => Group::Agents.ok(&about, message),
        files => {
            let message = format!("{message}; it is kept from {}", files.join(", "));
            let mend = Mend::Type("hookloop agents trust".to_owned());
            Group::Agents.warning(&about, message).mended_by(mend)
        }
    }];
    match login {
        Ok(LoginState::Shown) => {}
        Err(_) => findings.push(Group::Agents.warning(&about, "its login could not be looked for")),
        Ok(LoginState::Unknown { command }) => {
            let message =
                "nothing shows that it is logged in: neither its file nor a key in the environment";
            findings.push(Group::Agents.warning(&about, message).typed(command));
        }
        Ok(LoginState::LoggedOut { command }) => {
            let message = "it says that it is not logged in, and no key is in the environment";
            findings.push(Group::Agents.warning(&about, message).typed(command));
        }
    }
    findings
}
