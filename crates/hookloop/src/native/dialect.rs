//! The JSON that agents send to their hooks, and the JSON that they expect back.

use hookloop_engine::external::native::{HookMoment, HookReply};
use serde_json::{Value, json};

use super::agent::NativeAgent;

/// The start of a message from a gate to an agent. Gemini passes it to its own hooks as if its user had typed it.
const FEEDBACK: &str = "hookloop: not done yet.";

/// An event as hookloop understands it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NativeEvent {
    Start,
    Prompt,
    Stop,
    End,
    /// Nothing is done about it.
    Other,
}

impl NativeEvent {
    /// By any agent's name for it, in any spelling.
    pub(crate) fn of_name(name: &str) -> NativeEvent {
        let letters: String = name.chars().filter(|c| !matches!(c, '-' | '_')).collect();
        match letters.to_ascii_lowercase().as_str() {
            "sessionstart" => NativeEvent::Start,
            "userpromptsubmit" | "beforeagent" => NativeEvent::Prompt,
            "stop" | "afteragent" => NativeEvent::Stop,
            "sessionend" => NativeEvent::End,
            _ => NativeEvent::Other,
        }
    }
}

/// The input of an agent's hook.
#[derive(Debug)]
pub(crate) struct HookPayload {
    fields: Value,
}

impl HookPayload {
    /// Reads what is one JSON object.
    pub(crate) fn read(text: &[u8]) -> Result<HookPayload, String> {
        match serde_json::from_slice(text) {
            Ok(fields @ Value::Object(_)) => Ok(HookPayload { fields }),
            Ok(_) => Err("it is not an object".to_owned()),
            Err(error) => Err(error.to_string()),
        }
    }

    fn text(&self, field: &str) -> &str {
        self.fields[field].as_str().unwrap_or_default()
    }

    /// Where the agent works.
    pub(crate) fn directory(&self) -> Option<&str> {
        Some(self.text("cwd")).filter(|directory| !directory.is_empty())
    }

    /// The agent's own name for its conversation.
    pub(crate) fn conversation(&self) -> &str {
        self.text("session_id")
    }

    /// Returns the agent of a payload, by fields that only one agent has.
    pub(crate) fn agent(&self) -> NativeAgent {
        let has = |field: &str| self.fields.get(field).is_some();
        let is_gemini = matches!(self.text("hook_event_name"), "AfterAgent" | "BeforeAgent");
        let transcript = self.text("transcript_path").rsplit('/').next().unwrap_or_default();
        match () {
            () if is_gemini || has("timestamp") => NativeAgent::Gemini,
            () if has("turn_id") || transcript.starts_with("rollout-") => NativeAgent::Codex,
            () => NativeAgent::Claude,
        }
    }

    /// Returns the event of the payload.
    pub(crate) fn moment(&self, event: NativeEvent) -> Option<HookMoment<'_>> {
        match event {
            NativeEvent::Start => Some(HookMoment::Start),
            NativeEvent::Prompt if self.text("prompt").contains(FEEDBACK) => None,
            NativeEvent::Prompt => Some(HookMoment::Prompt),
            NativeEvent::Stop => Some(HookMoment::Stop { message: self.last_words() }),
            NativeEvent::End => Some(HookMoment::End),
            NativeEvent::Other => None,
        }
    }

    fn last_words(&self) -> &str {
        match self.text("last_assistant_message") {
            "" => self.text("prompt_response"),
            words => words,
        }
    }

    /// The event as the payload has it, else as the command line does.
    fn event_name<'a>(&'a self, named: &'a str) -> &'a str {
        match self.text("hook_event_name") {
            "" => named,
            name => name,
        }
    }
}

/// Returns the answer to the agent; none if there is nothing to report.
pub(crate) fn answer(
    agent: NativeAgent,
    payload: &HookPayload,
    named: &str,
    reply: HookReply,
) -> Option<Value> {
    match reply {
        HookReply::Nothing | HookReply::Pass { note: None } => None,
        HookReply::Context(text) => {
            let name = payload.event_name(named);
            Some(
                json!({ "hookSpecificOutput": { "hookEventName": name, "additionalContext": text } }),
            )
        }
        HookReply::Block { reason } => {
            let decision = match agent {
                NativeAgent::Claude | NativeAgent::Codex => "block",
                NativeAgent::Gemini => "deny",
            };
            Some(json!({ "decision": decision, "reason": format!("{FEEDBACK}\n{reason}") }))
        }
        HookReply::Pass { note: Some(note) } => Some(message(&note)),
    }
}

/// Words for the agent's user.
pub(crate) fn message(text: &str) -> Value {
    json!({ "systemMessage": text })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hook_event_names_are_read_in_every_spelling() {
        for (name, event) in [
            ("Stop", NativeEvent::Stop),
            ("AfterAgent", NativeEvent::Stop),
            ("after-agent", NativeEvent::Stop),
            ("session_start", NativeEvent::Start),
            ("USERPROMPTSUBMIT", NativeEvent::Prompt),
            ("BeforeAgent", NativeEvent::Prompt),
            ("SessionEnd", NativeEvent::End),
            ("SubagentStop", NativeEvent::Other),
            ("PreToolUse", NativeEvent::Other),
            ("", NativeEvent::Other),
        ] {
            assert_eq!(NativeEvent::of_name(name), event, "{name}");
        }
    }

    #[test]
    fn hook_replies_are_encoded_in_the_format_of_the_agent() {
        let payload = HookPayload::read(br#"{"hook_event_name":"BeforeAgent"}"#).unwrap();
        let say = |agent, reply| answer(agent, &payload, "before-agent", reply);
        let block = || HookReply::Block { reason: "a test fails".to_owned() };
        let reason = "hookloop: not done yet.\na test fails";
        assert_eq!(
            say(NativeAgent::Claude, block()).unwrap(),
            json!({"decision": "block", "reason": reason})
        );
        assert_eq!(
            say(NativeAgent::Codex, block()).unwrap(),
            json!({"decision": "block", "reason": reason})
        );
        assert_eq!(
            say(NativeAgent::Gemini, block()).unwrap(),
            json!({"decision": "deny", "reason": reason})
        );
        let pass = |note: Option<&str>| HookReply::Pass { note: note.map(str::to_owned) };
        assert_eq!(
            say(NativeAgent::Codex, pass(Some("n"))).unwrap(),
            json!({"systemMessage": "n"})
        );
        assert_eq!(say(NativeAgent::Codex, pass(None)), None);
        assert_eq!(say(NativeAgent::Gemini, HookReply::Nothing), None);
        let context = json!({"hookEventName": "BeforeAgent", "additionalContext": "t"});
        let said = say(NativeAgent::Gemini, HookReply::Context("t".to_owned())).unwrap();
        assert_eq!(said, json!({"hookSpecificOutput": context}));
        // A gate's message to an agent is not a prompt of its user.
        let told = json!({"hook_event_name": "BeforeAgent", "prompt": reason}).to_string();
        assert_eq!(HookPayload::read(told.as_bytes()).unwrap().moment(NativeEvent::Prompt), None);
    }
}
