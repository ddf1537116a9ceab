//! The transcript as this model reads it: the questions, and the calls for the last question with
//! their results. The model keeps nothing else between two calls.

use posse_agent::{LIMIT_NEAR, SUMMARY_HEADING, SUMMARY_REQUEST};
use posse_protocol::{Effect, Message, Part, Role, ToolCall, ToolResult, ToolSpec, piped};
use std::sync::Arc;

/// The name that this model's messages carry.
pub(crate) const WIRE: &str = "offline";
/// The beginning of the remark that the runtime adds when a person names agents.
const ASKS_FOR: &str = "[The user asks for the agent";
/// The beginning of the remark with the files that a message names.
const NAMES_FILES: &str = "[In the working folder: ";
/// Heading of the questions in a summary of this model.
pub(crate) const ASKED: &str = "Asked, the oldest first:";

/// A call for the question at hand, and its result.
pub(crate) struct Exchange<'m> {
    pub call: &'m ToolCall,
    pub text: String,
    pub failed: bool,
}

/// What the transcript holds.
#[derive(Default)]
pub(crate) struct Conversation<'m> {
    /// The questions, the oldest first. The last one is the present one.
    pub asked: Vec<String>,
    /// The agents that the question at hand asks for by name.
    pub agents: Vec<String>,
    /// Calls for the question at hand.
    pub exchanges: Vec<Exchange<'m>>,
    /// Replies of this model to the question at hand, so far.
    pub replies: usize,
    /// The loop wants the answer now.
    pub pressed: bool,
    /// The loop wants a summary of the conversation instead of an answer.
    pub summary_wanted: bool,
    /// What this model said last.
    pub last_answer: Option<String>,
}

impl<'m> Conversation<'m> {
    pub fn read(messages: &'m [Arc<Message>]) -> Self {
        let mut conversation = Conversation::default();
        let mut open: Vec<&'m ToolCall> = Vec::new();
        for message in messages {
            match message.role {
                Role::Assistant => {
                    conversation.hear_self(message);
                    open = message.tool_calls().collect();
                }
                Role::User => {
                    for part in &message.parts {
                        if let Part::ToolResult(result) = part {
                            conversation.note(&open, result);
                        }
                    }
                    conversation.hear(&message.text());
                }
            }
        }
        conversation
    }

    /// The agents that the question at hand is for, and their task, if it asks for agents.
    pub fn handed_on(&self, known: &[Specialist]) -> Option<(Vec<String>, String)> {
        let asked = self.asked.last()?;
        match (self.agents.as_slice(), asked_of(asked, known)) {
            ([], Some((agent, task))) => Some((vec![agent], task)),
            ([], None) => None,
            (agents, _) => Some((agents.to_vec(), asked.clone())),
        }
    }

    fn hear_self(&mut self, message: &Message) {
        self.replies += usize::from(message.wire.as_deref() == Some(WIRE));
        let text = message.text();
        if message.tool_calls().next().is_none() && !text.trim().is_empty() {
            self.last_answer = Some(text);
        }
    }

    fn note(&mut self, open: &[&'m ToolCall], result: &ToolResult) {
        if let Some(call) = open.iter().find(|call| call.id == result.call) {
            let message = Message::new(Role::User, result.parts.clone());
            self.exchanges.push(Exchange { call, text: message.text(), failed: result.is_error });
        }
    }

    fn hear(&mut self, text: &str) {
        let text = text.trim();
        if text.is_empty() {
            return;
        }
        if text.starts_with(SUMMARY_REQUEST) {
            self.summary_wanted = true;
        } else if text.starts_with(LIMIT_NEAR) {
            self.pressed = true;
        } else {
            self.agents.clear();
            match text.strip_prefix(SUMMARY_HEADING.trim_end()) {
                Some(summary) => self.asked.extend(asked_before(summary)),
                None => {
                    let (words, agents) = own_words(text);
                    self.asked.push(words);
                    self.agents = agents;
                }
            }
            self.exchanges.clear();
            self.replies = 0;
            self.pressed = false;
        }
    }
}

/// The question of a person, and the agents it asks for. Remarks of the runtime are only at the
/// end.
fn own_words(text: &str) -> (String, Vec<String>) {
    let mut words = text.trim_end();
    let mut named: Vec<String> = Vec::new();
    while let Some((before, remark)) = remark(words) {
        if remark.starts_with(ASKS_FOR) {
            named.extend(remark.split('`').skip(1).step_by(2).map(str::to_owned));
        }
        words = before.trim_end();
    }
    // A name in piped text does not ask for an agent.
    let own = piped::parted(words).0.to_lowercase();
    named.retain(|name| own.contains(&name.to_lowercase()));
    let only = [named.first().cloned().unwrap_or_default()];
    let known = only.map(|name| Specialist { name, description: String::new() });
    match asked_of(words, &known).filter(|_| named.len() == 1) {
        Some((_, task)) => (task, named),
        None => (words.to_owned(), named),
    }
}

/// A remark of the runtime at the end of `text`, and what stands before it.
fn remark(text: &str) -> Option<(&str, &str)> {
    let begin = text.rfind('\n').map_or(0, |at| at + 1);
    let (before, last) = text.split_at(begin);
    let known = last.starts_with(ASKS_FOR) || last.starts_with(NAMES_FILES);
    (known && last.ends_with(']')).then_some((before, last))
}

/// An agent that may be called, and what it is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Specialist {
    pub name: String,
    pub description: String,
}

/// The agents that may be called: the list at the end of the instructions, or else the one in the
/// description of the tool.
pub(crate) fn specialists(system: &str, tools: &[ToolSpec]) -> Vec<Specialist> {
    let read = |text: &str| -> Vec<Specialist> {
        let entry = |line: &str| {
            let (name, description) = line.strip_prefix("- ")?.split_once(": ")?;
            let plain = !name.is_empty() && !name.contains(char::is_whitespace);
            plain.then(|| Specialist {
                name: name.to_owned(),
                description: description.trim().to_owned(),
            })
        };
        text.lines().filter_map(entry).collect()
    };
    let (_, end) = system.rsplit_once("Working folder: ").unwrap_or_default();
    let from_system = read(end);
    if !from_system.is_empty() {
        return from_system;
    }
    let task = tools.iter().find(|tool| tool.effect == Effect::Delegate && tool.name == "Task");
    let listed = task.and_then(|task| task.description.rsplit_once("Agents:\n"));
    listed.map_or_else(Vec::new, |(_, listed)| read(listed))
}

/// The task in `text` and the agent that it is for, if it begins by asking one of `known`: "ask
/// explore to find x", "have the plan agent look at x".
pub(crate) fn asked_of(text: &str, known: &[Specialist]) -> Option<(String, String)> {
    const ASKS: [&str; 4] = ["use", "ask", "have", "let"];
    let lower = text.to_ascii_lowercase();
    let begin = lower.strip_prefix("please ").map_or(0, |_| "please ".len());
    known.iter().find_map(|agent| {
        let name = agent.name.to_ascii_lowercase();
        let asks = ASKS.iter().flat_map(|ask| {
            ["", " agent", " subagent"]
                .map(|kind| ["", "the "].map(|article| format!("{ask} {article}{name}{kind}")))
        });
        let tag = [[format!("@agent-{name}"), format!("@{name}")]];
        let asks = asks.chain(tag).flatten();
        let end = asks
            .filter(|asked| lower[begin..].starts_with(&format!("{asked} ")))
            .map(|asked| begin + asked.len() + 1)
            .max()?;
        let rest = text[end..].trim_start();
        let cut = ["to ", "and ", "for "]
            .iter()
            .find(|word| rest.to_ascii_lowercase().starts_with(*word));
        let task = cut.map_or(rest, |word| rest[word.len()..].trim_start());
        (!task.is_empty()).then(|| (agent.name.clone(), task.to_owned()))
    })
}

/// The questions in a summary: one of this model, or one the loop made without a model.
fn asked_before(summary: &str) -> Vec<String> {
    let listed = |heading: &str| -> Vec<String> {
        let lines = summary.lines().skip_while(|line| *line != heading).skip(1);
        lines.map_while(|line| line.strip_prefix("- ")).map(str::to_owned).collect()
    };
    let mut asked = listed(ASKED);
    if let Some((_, task)) = summary.split_once("\nThe task:\n") {
        asked.extend(task.split("\n\n").next().map(str::to_owned));
        asked.extend(listed("Said since by the user:"));
    }
    asked
}

/// The workspace, from the end of the instructions.
pub(crate) fn working_folder(system: &str) -> Option<&str> {
    let line = system.lines().rev().find_map(|line| line.strip_prefix("Working folder: "))?;
    Some(line.trim_end()).filter(|folder| folder.starts_with('/') && folder.len() > 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use posse_protocol::Extra;
    use serde_json::json;

    #[test]
    fn remarks_of_the_runtime_are_not_part_of_the_question() {
        let remark = "[The user asks for the agent `explore`: hand this to it with the Task tool.]";
        let asked = "find x with the explore agent";
        let files = "[In the working folder: file a.rs]";
        assert_eq!(
            own_words(&format!("{asked}\n{remark}\n{files}")),
            (asked.to_owned(), vec!["explore".to_owned()])
        );
        let piped = format!("find x\n\n<stdin>\nuse the explore agent\n{remark}\n</stdin>");
        assert_eq!(own_words(&piped), (piped.clone(), Vec::new()));
        assert_eq!(own_words(&format!("{piped}\n{remark}")), (piped, Vec::new()));
    }

    #[test]
    fn agents_are_known_from_the_instructions_or_the_tool() {
        let names = |system: &str, about: &str| -> Vec<String> {
            let task = ToolSpec {
                idempotent: true,
                ..ToolSpec::new("Task", about, Effect::Delegate, json!({}))
            };
            specialists(system, &[task]).into_iter().map(|agent| agent.name).collect()
        };
        let system = "Rules:\n- a: no agent\n\nWorking folder: /x\n\nYou lead agents.\n\
                      - explore: Looks.\n- my:plan: Plans: well.\n";
        assert_eq!(names(system, "Hands.\n\nAgents:\n- other: x"), ["explore", "my:plan"]);
        assert_eq!(names("Working folder: /x\n", "Hands.\n\nAgents:\n- other: x"), ["other"]);
        assert!(names("", "Hands.").is_empty());
    }

    #[test]
    fn a_task_may_begin_with_the_agent_that_gets_it() {
        let agent = |name: &str| Specialist { name: name.to_owned(), description: String::new() };
        let known = [agent("explore"), agent("plan")];
        let task = |text: &str| asked_of(text, &known);
        for asked in ["Use the explore agent to find x", "ask explore to find x", "@explore find x"]
        {
            assert_eq!(task(asked), Some(("explore".to_owned(), "find x".to_owned())), "{asked}");
        }
        for asked in ["use explorer to find x", "explore this folder", "let planets move", ""] {
            assert_eq!(task(asked), None, "{asked}");
        }
    }

    fn call(id: &str) -> Message {
        let call = ToolCall {
            id: id.into(),
            name: "Grep".into(),
            input: json!({}),
            extra: Extra::default(),
        };
        Message::from_model(WIRE, vec![Part::ToolCall(call)])
    }

    fn result(id: &str, text: &str) -> Message {
        let parts = vec![Part::text(text)];
        let result =
            ToolResult { call: id.into(), parts, is_error: false, extra: Extra::default() };
        Message::new(Role::User, vec![Part::ToolResult(result)])
    }

    #[test]
    fn only_what_belongs_to_the_question_at_hand_counts() {
        let messages: Vec<Arc<Message>> = [
            Message::user("first"),
            call("a"),
            result("a", "old"),
            Message::from_model(WIRE, vec![Part::text("answer")]),
            Message::user("second"),
            call("b"),
            result("b", "new"),
            Message::user("You are close to your limit of turns: 3 of 4 used. Stop working now."),
        ]
        .map(Arc::new)
        .to_vec();
        let conversation = Conversation::read(&messages);
        assert_eq!(conversation.asked, ["first", "second"]);
        assert_eq!((conversation.exchanges.len(), conversation.replies), (1, 1));
        assert_eq!(conversation.exchanges[0].text, "new");
        assert!(conversation.pressed && !conversation.summary_wanted);
        assert_eq!(conversation.last_answer.as_deref(), Some("answer"));
    }

    #[test]
    fn a_summary_gives_back_its_questions() {
        let own = format!("{SUMMARY_HEADING}{ASKED}\n- one\n- two\n\nmore");
        let other =
            format!("{SUMMARY_HEADING}The task:\nfind it\n\nSaid since by the user:\n- and that\n");
        for (text, expected) in [(own, ["one", "two"]), (other, ["find it", "and that"])] {
            let messages = [Arc::new(Message::user(text))];
            assert_eq!(Conversation::read(&messages).asked, expected);
        }
    }

    #[test]
    fn the_working_folder_is_the_last_one_named() {
        assert_eq!(working_folder("Do.\n\nWorking folder: /a b/c\n"), Some("/a b/c"));
        assert_eq!(working_folder("none"), None);
    }
}
