//! Checks of agents: installed, allowed, and logged in as far as files show it.

use hookloop_agents::AgentPowers;
use hookloop_agents::login::{LoginState, login_state};
use hookloop_agents::readiness::NotReady;
use hookloop_agents::repo_consent;
use hookloop_agents::repo_consent::{AgentChoices, AgentRefusal};
use hookloop_agents::version::{check_line, version_line};
use hookloop_config::agents::profile::any_install_command;
use hookloop_config::effective::EffectiveConfig;
use hookloop_hooks::runner::HookRunner;

use super::{Finding, FindingGroup, Remedy};

/// Checks the installed agents, concurrently.
pub fn examine_agents(rules: &EffectiveConfig, runner: &HookRunner) -> Vec<Finding> {
    let names = repo_consent::present(rules, runner.ground());
    if names.is_empty() {
        let (install, others) = any_install_command();
        let message = format!("no agent is installed; hookloop also knows {others}");
        return vec![FindingGroup::Agents.warning("agents", message).typed(install)];
    }
    std::thread::scope(|scope| {
        let asked: Vec<_> =
            names.iter().map(|name| scope.spawn(|| examine(name, rules, runner))).collect();
        asked.into_iter().flat_map(|asked| asked.join().unwrap_or_default()).collect()
    })
}

fn examine(name: &str, rules: &EffectiveConfig, runner: &HookRunner) -> Vec<Finding> {
    let about = format!("agent {name}");
    let fit = match repo_consent::fit(rules, name, &AgentChoices::default(), runner.ground()) {
        Ok(fit) => fit,
        Err(error) => {
            let finding = FindingGroup::Agents.error(&about, error.to_string());
            let hint = error.hint();
            return vec![match (hint, &error) {
                // The hint names the rule and the person to ask.
                (Some(hint), AgentRefusal::Forbidden(_)) => finding.with_remedy(Remedy::Do(hint)),
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
        return vec![FindingGroup::Agents.error(&about, error.to_string()).typed(error.hint())];
    }
    let version = line.unwrap_or_else(|| "it does not tell its version".to_owned());
    let message = format!("{version}; it may {}", AgentPowers(&fit.settings));
    let mut findings = vec![match fit.ignored.as_slice() {
        [] => FindingGroup::Agents.ok(&about, message),
        files => {
            let message = format!("{message}; it is kept from {}", files.join(", "));
            let remedy = Remedy::Type("hookloop agents trust".to_owned());
            FindingGroup::Agents.warning(&about, message).with_remedy(remedy)
        }
    }];
    match login {
        Ok(LoginState::Shown) => {}
        Err(_) => {
            findings.push(FindingGroup::Agents.warning(&about, "its login could not be looked for"))
        }
        Ok(LoginState::Unknown { command }) => {
            let message =
                "nothing shows that it is logged in: neither its file nor a key in the environment";
            findings.push(FindingGroup::Agents.warning(&about, message).typed(command));
        }
        Ok(LoginState::LoggedOut { command }) => {
            let message = "it says that it is not logged in, and no key is in the environment";
            findings.push(FindingGroup::Agents.warning(&about, message).typed(command));
        }
    }
    findings
}
