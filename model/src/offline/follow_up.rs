//! Questions that lean on the one before: "and where is it used?".

use super::intent::{self, Intent};
use super::question::{Name, Question};

const PRONOUNS: &str = "it|its|this|that|they|them|these|those|there|the same|this function|\
    that function|this file|that file|es|das|dies|sie|ihn|dieses|il|elle|ça|cela|ceci|eso|esto|\
    ello|lo|它|这个|那个";
const CONNECTIVES: &str = "and|also|what about|how about|and what about|or|same for|und|\
    was ist mit|auch|et|et pour|y|también|那|还有";

/// The last of `asked`, with what it leaves to the ones before filled in, and what it wants.
/// `last_answer` is what was answered to the one before.
pub(super) fn resolve(
    asked: &[String],
    last_answer: Option<&str>,
    folder: Option<&str>,
) -> (Question, Intent) {
    let mut before: Option<(Question, Intent)> = None;
    for (at, text) in asked.iter().enumerate() {
        let own = Question::parse(text, folder);
        let answered = last_answer.filter(|_| at + 1 == asked.len());
        before = Some(match before {
            Some((before, wanted)) => lean(own, before, wanted, answered),
            None => {
                let wanted = intent::of(&own);
                (own, wanted)
            }
        });
    }
    before.unwrap_or_else(|| (Question::default(), Intent::Greeting))
}

fn lean(
    own: Question,
    before: Question,
    before_wanted: Intent,
    answered: Option<&str>,
) -> (Question, Intent) {
    let wanted = intent::of(&own);
    let has_name = !own.names.is_empty() || !own.files.is_empty() || !own.quoted.is_empty();
    let words = own.plain.split_whitespace().count();
    let connects = own.begins(CONNECTIVES);
    if has_name {
        // "And `Store`?" asks the same of something else.
        let bare = connects && words <= 5 && matches!(wanted, Intent::Definition | Intent::File);
        let carried = bare && is_about_names(before_wanted);
        return (own, if carried { before_wanted } else { wanted });
    }
    let refers = own.has(PRONOUNS) || connects && words <= 6 || words <= 2 && own.terms.is_empty();
    if !refers || !leaves_room(&own, wanted) {
        return (own, wanted);
    }
    let mut merged = own.clone();
    merged.names = before.names.clone();
    merged.files = before.files.clone();
    merged.quoted = before.quoted.clone();
    if merged.names.is_empty() && merged.files.is_empty() {
        merged.names.extend(answered.and_then(first_name));
    }
    if merged.names.is_empty() && merged.files.is_empty() && merged.quoted.is_empty() {
        if before.terms.is_empty() || !matches!(before_wanted, Intent::Search | Intent::Files) {
            return (own, wanted);
        }
        merged.terms.extend(before.terms.clone());
        merged.terms.truncate(5);
    }
    let wanted = match intent::of(&merged) {
        Intent::Definition if wanted == Intent::Overview && !own.has("where") => {
            Intent::Explanation
        }
        wanted => wanted,
    };
    (merged, wanted)
}

fn is_about_names(wanted: Intent) -> bool {
    matches!(
        wanted,
        Intent::Definition
            | Intent::Uses
            | Intent::Tests
            | Intent::Explanation
            | Intent::File
            | Intent::History
    )
}

/// Whether a question wants something that a subject from before can fill in.
fn leaves_room(own: &Question, wanted: Intent) -> bool {
    match wanted {
        Intent::Definition
        | Intent::Uses
        | Intent::Tests
        | Intent::Explanation
        | Intent::Search
        | Intent::File => own.terms.len() <= 2,
        Intent::History => own.has(PRONOUNS),
        Intent::Overview => !own.has(
            "this project|this repository|this repo|the project|dieses projekt|ce projet|\
                este proyecto",
        ),
        _ => false,
    }
}

/// The first name of code in an answer, places left out.
fn first_name(answer: &str) -> Option<Name> {
    let spans = answer.split('`').skip(1).step_by(2).take(6);
    let is_place =
        |span: &str| span.rsplit(':').next().is_some_and(|end| end.parse::<usize>().is_ok());
    let is_name = |span: &&str| {
        let plain = span.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | ':'));
        plain
            && span.starts_with(|first: char| first.is_alphabetic() || first == '_')
            && !is_place(span)
    };
    let mut question = Question::parse(&format!("`{}`", spans.into_iter().find(is_name)?), None);
    question.names.pop()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(asked: &[&str], names: &[&str], expected: Intent) {
        let asked: Vec<String> = asked.iter().map(|text| (*text).to_owned()).collect();
        let (question, wanted) = resolve(&asked, None, None);
        let shown: Vec<String> = question.names.iter().map(Name::shown).collect();
        assert_eq!(
            (shown.as_slice(), wanted),
            (&names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>()[..], expected),
            "{asked:?}"
        );
    }

    #[test]
    fn what_it_is_comes_from_before() {
        check(
            &["where is next_step defined?", "and where is it used?"],
            &["next_step"],
            Intent::Uses,
        );
        check(&["where is next_step defined?", "is it tested?"], &["next_step"], Intent::Tests);
        check(&["explain `Toolbox`", "who changed it last?"], &["Toolbox"], Intent::History);
        check(
            &["where is next_step used?", "what does it do?"],
            &["next_step"],
            Intent::Explanation,
        );
        check(
            &["where is next_step used?", "and its tests?", "who calls it"],
            &["next_step"],
            Intent::Uses,
        );
        check(&["where is next_step used?", "and `run`?"], &["run"], Intent::Uses);
        check(
            &["Wo ist next_step definiert?", "und wo wird es verwendet?"],
            &["next_step"],
            Intent::Uses,
        );
    }

    #[test]
    fn a_question_of_its_own_stays_one() {
        check(
            &["where is next_step defined?", "what does this project do?"],
            &[],
            Intent::Overview,
        );
        check(&["where is next_step defined?", "how do I build it?"], &[], Intent::Commands);
        check(
            &["where is next_step defined?", "where is `run` defined"],
            &["run"],
            Intent::Definition,
        );
        check(&["what does it do?"], &[], Intent::Overview);
    }

    #[test]
    fn it_may_be_what_the_answer_named() {
        let asked = ["which function gives berths".to_owned(), "where is it used?".to_owned()];
        let (question, wanted) =
            resolve(&asked, Some("`core/src/p.rs:30`: function `assign_berth`"), None);
        assert_eq!((question.names, wanted), (vec![Name::plain("assign_berth")], Intent::Uses));
    }
}
