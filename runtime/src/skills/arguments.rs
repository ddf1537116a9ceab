//! Arguments in the text of a skill. The substitution is pure and makes one pass, so the text of an
//! argument is never itself read as a placeholder.

use super::reading::Form;
use std::path::Path;

/// Returns `body` with `arguments` in place of its placeholders: `$ARGUMENTS` is all of them as
/// written, `$0` (in a command `$1`) and `$ARGUMENTS[0]` the first and so on, `$name` the one at the position of `name`
/// in `names`, `${CLAUDE_SKILL_DIR}` and `${POSSE_SKILL_DIR}` the folder of the skill. A backslash
/// escapes a `$`. Without any placeholder, the arguments follow the text.
pub(super) fn fill(body: &str, given: &Given<'_>, folder: &Path) -> String {
    let arguments = given.whole;
    let mut filled = String::with_capacity(body.len() + arguments.len());
    let mut used = false;
    let mut rest = body;
    while let Some(at) = rest.find('$') {
        let (before, from) = rest.split_at(at);
        if let Some(kept) = before.strip_suffix('\\').filter(|_| is_placeholder(from, given)) {
            filled.push_str(kept);
            filled.push('$');
            rest = &from[1..];
            continue;
        }
        filled.push_str(before);
        match placeholder(from, given, folder) {
            Some((value, length)) => {
                used |= !from.starts_with("${");
                filled.push_str(&value);
                rest = &from[length..];
            }
            None => {
                filled.push('$');
                rest = &from[1..];
            }
        }
    }
    filled.push_str(rest);
    if !used && !arguments.is_empty() {
        filled.push_str("\n\nARGUMENTS: ");
        filled.push_str(arguments);
    }
    filled
}

/// The arguments of one use.
pub(super) struct Given<'a> {
    whole: &'a str,
    words: Vec<String>,
    names: &'a [String],
    /// The number of the first argument.
    first: usize,
}

impl<'a> Given<'a> {
    /// Returns `arguments` for a text with these `names` of them.
    pub(super) fn of(arguments: &'a str, names: &'a [String], form: Form) -> Self {
        let whole = arguments.trim();
        let first = if form == Form::Command { 1 } else { 0 };
        Given { whole, words: words(whole), names, first }
    }
}

const ALL: &str = "$ARGUMENTS";
const FOLDERS: [&str; 2] = ["${CLAUDE_SKILL_DIR}", "${POSSE_SKILL_DIR}"];

/// True when `text` begins with a possible placeholder, whatever the arguments are.
fn is_placeholder(text: &str, given: &Given<'_>) -> bool {
    let is_number = text[1..].starts_with(|char: char| char.is_ascii_digit());
    is_number
        || text.starts_with(ALL)
        || FOLDERS.iter().any(|folder| text.starts_with(folder))
        || named(text, given).is_some()
}

/// Returns the value of the placeholder at the beginning of `text`, and its length. If the argument
/// is missing, a name becomes empty, but a number stays: it may be no placeholder at all.
fn placeholder(text: &str, given: &Given<'_>, folder: &Path) -> Option<(String, usize)> {
    if let Some(name) = FOLDERS.iter().find(|name| text.starts_with(**name)) {
        return Some((folder.display().to_string(), name.len()));
    }
    if let Some(after) = text.strip_prefix(ALL) {
        if let Some((index, length)) = after.strip_prefix('[').and_then(number)
            && after[1 + length..].starts_with(']')
        {
            let word = given.words.get(index)?;
            return Some((word.clone(), ALL.len() + length + 2));
        }
        return ends(after).then(|| (given.whole.to_owned(), ALL.len()));
    }
    if let Some((index, length)) = number(&text[1..]) {
        let index = index.checked_sub(given.first)?;
        let word = given.words.get(index).filter(|_| ends(&text[1 + length..]))?;
        return Some((word.clone(), 1 + length));
    }
    let (index, length) = named(text, given)?;
    Some((given.words.get(index).cloned().unwrap_or_default(), length))
}

/// Returns the named argument that `text` begins with, and the length of that name.
fn named(text: &str, given: &Given<'_>) -> Option<(usize, usize)> {
    let after = &text[1..];
    let fits =
        |name: &String| !name.is_empty() && after.strip_prefix(name.as_str()).is_some_and(ends);
    let index = given.names.iter().position(fits)?;
    Some((index, 1 + given.names[index].len()))
}

/// Returns the number that `text` begins with, and how many digits it has.
fn number(text: &str) -> Option<(usize, usize)> {
    let length = text.bytes().take_while(u8::is_ascii_digit).count();
    text[..length].parse().ok().map(|number| (number, length))
}

/// True when a name ends before `after`.
fn ends(after: &str) -> bool {
    !after.starts_with(|char: char| char.is_alphanumeric() || char == '_')
}

/// Splits `text` into words; quotes keep several together.
fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    for char in text.chars() {
        match quote {
            Some(end) if char == end => quote = None,
            Some(_) => word.get_or_insert_default().push(char),
            None if char == '"' || char == '\'' => {
                quote = Some(char);
                word.get_or_insert_default();
            }
            None if char.is_whitespace() => words.extend(word.take()),
            None => word.get_or_insert_default().push(char),
        }
    }
    words.extend(word);
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(body: &str, arguments: &str, expected: &str) {
        let names = ["issue", "branch"].map(str::to_owned);
        let given = Given::of(arguments, &names, Form::Skill);
        assert_eq!(fill(body, &given, Path::new("/s")), expected, "{body}");
    }

    #[test]
    fn a_command_counts_its_arguments_from_one() {
        let given = Given::of("one 'two three'", &[], Form::Command);
        let filled = fill("$1-$2-$3-$0-$ARGUMENTS[0]", &given, Path::new("/s"));
        assert_eq!(filled, "one-two three-$3-$0-one");
    }

    #[test]
    fn all_arguments_stand_where_they_are_asked_for_as_they_were_given() {
        check("Do $ARGUMENTS.", "a  'b c'", "Do a  'b c'.");
        check("Do $ARGUMENTS, then $ARGUMENTS", "", "Do , then ");
        check("$ARGUMENTSX $ARGUMENTS_", "a", "$ARGUMENTSX $ARGUMENTS_\n\nARGUMENTS: a");
    }

    #[test]
    fn single_arguments_are_counted_from_zero_and_quotes_keep_words_together() {
        check("$0-$1-$ARGUMENTS[1]-$2", "one 'two three'", "one-two three-two three-$2");
        check("$00 $1x $1,", "a b", "a $1x b,");
        check("$ARGUMENTS[9] $ARGUMENTS[x]", "a", "$ARGUMENTS[9] a[x]");
        check("$99999999999999999999999", "a", "$99999999999999999999999\n\nARGUMENTS: a");
    }

    #[test]
    fn named_arguments_are_filled_in_and_empty_when_missing() {
        check("fix $issue on $branch; $issues $other", "12", "fix 12 on ; $issues $other");
    }

    #[test]
    fn a_backslash_keeps_a_dollar() {
        check(
            "awk '{print \\$0}' \\$ARGUMENTS \\$issue $0",
            "a",
            "awk '{print $0}' $ARGUMENTS $issue a",
        );
        check("cost \\$ 5, \\$HOME $", "", "cost \\$ 5, \\$HOME $");
    }

    #[test]
    fn what_nobody_asked_for_follows_and_the_folder_is_known() {
        check("Do it.", "now", "Do it.\n\nARGUMENTS: now");
        check("Do it.", "  ", "Do it.");
        check("${CLAUDE_SKILL_DIR}/x ${POSSE_SKILL_DIR}", "a", "/s/x /s\n\nARGUMENTS: a");
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_filled_in_and_one_without_placeholders_stays(
            body in "[$\\\\A-Z0-9\\[\\]{}é issue]{0,40}",
            arguments in "[a$é'\" ]{0,12}",
        ) {
            check_any(&body, &arguments);
            check_any(&body.replace('$', ""), &arguments);
        }
    }

    fn check_any(body: &str, arguments: &str) {
        let names = ["issue".to_owned()];
        let filled = fill(body, &Given::of(arguments, &names, Form::Skill), Path::new("/s"));
        if !body.contains('$') {
            assert!(filled.starts_with(body));
        }
        if !arguments.trim().is_empty() && !body.contains('$') {
            assert!(filled.ends_with(arguments.trim()));
        }
    }

    #[test]
    fn what_an_argument_holds_is_not_filled_in_again() {
        check("$0 and $ARGUMENTS", "$1 $ARGUMENTS", "$1 and $1 $ARGUMENTS");
    }
}
