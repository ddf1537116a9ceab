//! The transcript as this model reads it: what was asked, what was called for the question at
//! hand, what came back. Everything it knows is here; it keeps nothing between two calls.

use posse_agent::{LIMIT_NEAR, SUMMARY_HEADING, SUMMARY_REQUEST};
use posse_protocol::{Message, Part, Role, ToolCall, ToolResult};
use std::sync::Arc;

/// The name that this model's messages carry.
pub(super) const WIRE: &str = "offline";
/// How the remark begins that the runtime adds when a person asks for agents by their names.
const ASKS_FOR: &str = "[The user asks for the agent";
/// Heading of the questions in a summary of this model.
pub(super) const ASKED: &str = "Asked, the oldest first:";

/// A call for the question at hand, and its result.
pub(super) struct Exchange<'m> {
    pub call: &'m ToolCall,
    pub text: String,
    pub failed: bool,
}

/// What the transcript holds.
#[derive(Default)]
pub(super) struct Conversation<'m> {
    /// What people asked, the oldest first. The last one is at hand.
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

/// What a person wants to know, and the agents that are to find it out.
fn own_words(text: &str) -> (String, Vec<String>) {
    let Some((words, remark)) = text.rsplit_once(ASKS_FOR) else {
        return (text.to_owned(), Vec::new());
    };
    let words = words.trim();
    let lower = words.to_ascii_lowercase();
    let named: Vec<String> = remark.split('`').skip(1).step_by(2).map(str::to_owned).collect();
    let asked = named.iter().map(|name| name.to_ascii_lowercase()).flat_map(|name| {
        [format!("use the {name} agent to "), format!("@agent-{name} "), format!("ask {name} to ")]
    });
    let begin = asked.filter(|asked| lower.starts_with(asked)).map(|asked| asked.len()).max();
    (words[begin.unwrap_or_default()..].to_owned(), named)
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

/// The working folder, which the instructions end with.
pub(super) fn working_folder(system: &str) -> Option<&str> {
    let line = system.lines().rev().find_map(|line| line.strip_prefix("Working folder: "))?;
    Some(line.trim_end()).filter(|folder| folder.starts_with('/') && folder.len() > 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use posse_protocol::Extra;
    use serde_json::json;

    #[test]
    fn agents_that_a_person_asks_for_are_not_part_of_the_question() {
        let remark =
            "\n[The user asks for the agent `explore`: hand this to it with the Task tool.]";
        for asked in ["Use the explore agent to find x", "@agent-explore find x", "find x"] {
            let said = [Arc::new(Message::user(format!("{asked}{remark}")))];
            let read = Conversation::read(&said);
            assert_eq!(
                (&*read.asked, &*read.agents),
                (&["find x".to_owned()][..], &["explore".to_owned()][..])
            );
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
