//! Agents that a person asks for by name: `@agent-reviewer`, "use the reviewer agent".

use posse_protocol::Offer;

/// Words before the name of an agent that make a sentence a request.
const VERBS: [&str; 17] = [
    "use", "using", "ask", "asking", "have", "let", "run", "call", "with", "via", "through", "by",
    "to", "start", "launch", "spawn", "invoke",
];
const ARTICLES: [&str; 6] = ["the", "a", "an", "my", "our", "your"];

/// Words after which a sentence asks for nobody: "do not use the reviewer agent".
const NEGATIONS: [&str; 12] = [
    "not", "no", "never", "without", "avoid", "nor", "neither", "cannot", "dont", "instead",
    "stop", "except",
];

/// Returns the agents of `offers` that `text` asks for, each once, in the order of `offers`.
pub(crate) fn mentioned<'a>(text: &str, offers: &'a [Offer]) -> Vec<&'a Offer> {
    let lower = text.to_lowercase();
    let sentences: Vec<&str> =
        lower.split(['!', '?', ';', ',', '\n']).flat_map(|part| part.split(". ")).collect();
    let asked = |offer: &&Offer| {
        let name = offer.name.as_str().to_lowercase();
        sentences.iter().any(|text| is_tagged(text, &name) || is_named(text, &name))
    };
    offers.iter().filter(asked).collect()
}

/// True when what comes before the name of an agent in a sentence says that it is not wanted.
fn is_negated<'t>(mut before: impl Iterator<Item = &'t str>) -> bool {
    before.any(|word| NEGATIONS.contains(&word) || word.ends_with("n't") || word.ends_with("n’t"))
}

/// Returns the note for the agent about the agents that the person asks for.
pub(crate) fn hint(asked: &[&Offer]) -> Option<String> {
    let names: Vec<String> = asked.iter().map(|offer| format!("`{}`", offer.name)).collect();
    match names.as_slice() {
        [] => None,
        [one] => Some(format!(
            "[The user asks for the agent {one}: if the message wants work from it, hand it that work \
             with the Task tool.]"
        )),
        more => Some(format!(
            "[The user asks for the agents {}: if the message wants work from them, hand each its part \
             with the Task tool.]",
            more.join(", ")
        )),
    }
}

/// True when `text` has `@agent-name` as a word of its own.
fn is_tagged(text: &str, name: &str) -> bool {
    let tag = format!("@agent-{name}");
    text.match_indices(&tag).any(|(at, tag)| {
        let before = text[..at].chars().next_back();
        let after = &text[at + tag.len()..];
        let is_one = before.is_none_or(|before| !is_part_of_a_name(before)) && ends_a_name(after);
        is_one && !is_negated(text[..at].split_whitespace())
    })
}

/// True when a name ends before `after`: a full stop ends a sentence, but a colon may begin the
/// name of an agent in a plugin.
fn ends_a_name(after: &str) -> bool {
    let mut rest = after.chars();
    match rest.next() {
        Some(':') => rest.next().is_none_or(char::is_whitespace),
        Some(next) => !is_part_of_a_name(next),
        None => true,
    }
}

fn is_part_of_a_name(char: char) -> bool {
    char.is_alphanumeric() || matches!(char, '_' | '-' | '@')
}

/// True when `text` says something like "use the name agent".
fn is_named(text: &str, name: &str) -> bool {
    let is_edge = |char: char| char.is_whitespace() || ".,;:!?()\"`".contains(char);
    let words = text.split(is_edge).map(|word| word.trim_matches('\''));
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    words.windows(2).enumerate().any(|(at, pair)| {
        let said = pair[0] == name && matches!(pair[1], "agent" | "subagent" | "agents");
        let mut before = words[..at].iter().rev().skip_while(|word| ARTICLES.contains(word));
        said && before.next().is_some_and(|word| VERBS.contains(word))
            && !is_negated(words[..at].iter().copied())
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use posse_protocol::Extra;

    fn check(text: &str, expected: &[&str]) {
        let offers = ["x", "y", "code-reviewer", "my-plugin:lint", "plan"].map(|name| Offer {
            name: name.parse().unwrap(),
            description: String::new(),
            agent: None,
            extra: Extra::default(),
        });
        let found = mentioned(text, &offers);
        let found: Vec<&str> = found.iter().map(|offer| offer.name.as_str()).collect();
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn d15_a_tag_counts_once_and_an_address_is_none() {
        check("@agent-x hi @agent-x, mail a@agent-y", &["x"]);
        check(
            "(@agent-code-reviewer) please. @agent-my-plugin:lint: go",
            &["code-reviewer", "my-plugin:lint"],
        );
        check("@agent-xy @agent-x-y @agent-code", &[]);
    }

    #[test]
    fn a_sentence_may_ask_for_an_agent() {
        check("Use the code-reviewer agent to review auth.rs", &["code-reviewer"]);
        check("please ask my Plan agent first", &["plan"]);
        check("delegate it to the code-reviewer subagent.", &["code-reviewer"]);
        check("No. Use the 'plan' agent.", &["plan"]);
        check("this is not hard; ask the plan agent", &["plan"]);
        check("don't use the plan agent, use the code-reviewer agent", &["code-reviewer"]);
        for text in [
            "do not use the plan agent",
            "Never use the plan agent for this, do it yourself",
            "don't use the plan agent",
            "Please do not @agent-plan this",
        ] {
            check(text, &[]);
        }
        check("what does the plan agent do?", &[]);
        check("the plan is to use an agent", &[]);
        check("", &[]);
    }

    #[test]
    fn whoever_is_asked_for_is_told() {
        assert_eq!(hint(&[]), None);
        let offers = ["x", "y"].map(|name| Offer {
            name: name.parse().unwrap(),
            description: String::new(),
            agent: None,
            extra: Extra::default(),
        });
        assert!(hint(&[&offers[0]]).unwrap().contains("the agent `x`"));
        assert!(hint(&[&offers[0], &offers[1]]).unwrap().contains("`x`, `y`"));
    }
}
