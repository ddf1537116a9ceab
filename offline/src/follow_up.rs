//! Questions that refer to the one before: "and where is it used?".

use crate::intent::{self, CountedThing, Intent};
use crate::question::Question;

const PRONOUNS: &str =
    "it|its|this|that|they|them|these|those|this function|that function|this file|that file";
const CONNECTIVES: &str = "and|what about|how about|and what about|or|same for";

/// The last of `asked`, completed from the ones before it, and its intent.
pub(crate) fn resolve(asked: &[String], root: Option<&str>) -> (Question, Intent) {
    let mut before: Option<(Question, Intent)> = None;
    for text in asked {
        let own = Question::parse(text, root);
        before = Some(match before {
            Some((before, wanted)) => lean(own, &before, wanted),
            None => {
                let wanted = intent::of(&own);
                (own, wanted)
            }
        });
    }
    before.unwrap_or_else(|| (Question::default(), Intent::Help))
}

fn lean(own: Question, before: &Question, before_wanted: Intent) -> (Question, Intent) {
    let wanted = intent::of(&own);
    let connects = own.begins(CONNECTIVES);
    let about_names = matches!(before_wanted, Intent::Symbol(_) | Intent::File | Intent::History);
    if !own.names.is_empty() || !own.files.is_empty() || !own.quoted.is_empty() {
        // "And `Store`?" asks the same of something else.
        let bare = connects && own.length() <= 5 && own.terms.is_empty() && about_names;
        return (own, if bare { before_wanted } else { wanted });
    }
    let refers = own.has(PRONOUNS) || connects && own.length() <= 6;
    let leaves_room = match wanted {
        Intent::Search(_) | Intent::Symbol(_) | Intent::List(CountedThing::Tests) => {
            own.terms.is_empty()
        }
        Intent::History | Intent::Overview => true,
        _ => false,
    };
    let whole = own.has("project|repository|repo|codebase|library|package|program|app");
    if !refers || !leaves_room || whole || !about_names {
        return (own, wanted);
    }
    let mut merged = own;
    merged.names.clone_from(&before.names);
    // A word that counted as a name still does.
    let named = matches!(before_wanted, Intent::Symbol(_));
    merged.names.iter_mut().for_each(|name| name.sure |= named);
    merged.files.clone_from(&before.files);
    merged.quoted.clone_from(&before.quoted);
    let wanted = intent::of(&merged);
    (merged, wanted)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::intent::Aspect;

    #[track_caller]
    fn check(asked: &[&str], names: &[&str], expected: Intent) {
        let asked: Vec<String> = asked.iter().map(|text| (*text).to_owned()).collect();
        let (question, wanted) = resolve(&asked, None);
        let shown: Vec<String> = question.names.iter().map(|name| name.shown()).collect();
        assert_eq!((shown, wanted), (names.iter().map(|n| (*n).to_owned()).collect(), expected));
    }

    #[test]
    fn what_it_is_comes_from_before() {
        let first = "where is next_step defined?";
        let name = &["next_step"][..];
        check(&[first, "and where is it used?"], name, Intent::Symbol(Aspect::Uses));
        check(&[first, "is it tested?"], name, Intent::Symbol(Aspect::Tests));
        let plain = ["where is Alarm defined?", "and who uses it?", "what does it do?"];
        check(&plain[..2], &["Alarm"], Intent::Symbol(Aspect::Uses));
        check(&plain, &["Alarm"], Intent::Symbol(Aspect::Explanation));
        check(&[first, "who changed it last?"], name, Intent::History);
        check(&[first, "what does it do?"], name, Intent::Symbol(Aspect::Explanation));
        check(&["where is next_step used?", "and `run`?"], &["run"], Intent::Symbol(Aspect::Uses));
    }

    #[test]
    fn a_question_of_its_own_stays_one() {
        let first = "where is next_step defined?";
        check(&[first, "what does this project do?"], &[], Intent::Overview);
        check(&[first, "how do I build it?"], &[], Intent::Commands);
        check(&["what does it do?"], &[], Intent::Overview);
    }
}
