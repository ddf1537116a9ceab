//! What a simple command may run: itself, the command it wraps, programs that its variables name.

use super::program::{
    Runs, Sets, base, does_what_it_is_told, is_input, reads_as_shell, runs, sets,
};
use super::shell::{MOST, Script, Word, settings};

/// A simple command, and what it may run.
#[derive(Default)]
pub(crate) struct Part {
    /// Its words, without wrappers that do not change what runs.
    pub(crate) words: Vec<Word>,
    /// Every command that may run, as far as known, with wrappers removed in every way.
    pub(crate) reach: Vec<Vec<Word>>,
    /// Why more may run than that.
    pub(crate) unclear: Option<&'static str>,
}

/// How deep commands in arguments are parsed.
const NESTED: u32 = 4;

/// Adds `words` and everything that they may run.
pub(crate) fn collect(words: &[Word], part: &mut Part, depth: u32) {
    if words.is_empty() {
        return;
    }
    part.reach.push(words.to_vec());
    for (name, value) in settings(words).unwrap_or_default() {
        collect_setting(&name, &value, false, part, depth);
    }
    if depth > NESTED || part.reach.len() > 4 * MOST {
        part.unclear.get_or_insert("it is nested too deep to be judged");
        return;
    }
    match runs(words) {
        Runs::Itself => {}
        Runs::Anything => {
            part.unclear.get_or_insert("it may run other programs");
        }
        Runs::Code(code) => collect_script(&code, part, depth),
        Runs::Commands(commands, settings) => {
            for setting in settings {
                collect_assignment(&setting, part, depth);
            }
            for command in commands {
                collect(&command, part, depth + 1);
            }
        }
        Runs::Arguments => collect_arguments(words, part, depth),
    }
}

/// Adds the commands of a shell script.
fn collect_script(text: &str, part: &mut Part, depth: u32) {
    let inner = Script::within(text);
    part.unclear = part.unclear.or(inner.unclear);
    for words in &inner.commands {
        collect(words, part, depth + 1);
    }
    for setting in &inner.settings {
        collect_setting(&setting.name, &setting.value, setting.is_exported, part, depth + 1);
    }
}

/// Adds what `NAME=value` before a command makes programs run.
fn collect_assignment(word: &Word, part: &mut Part, depth: u32) {
    let Some((name, value)) = word.start().split_once('=') else { return };
    let value = match word {
        Word::Exact(_) => Word::Exact(value.to_owned()),
        _ => Word::Partly { start: value.to_owned(), end: String::new() },
    };
    collect_setting(name, &value, true, part, depth);
}

/// Adds what an environment variable makes programs run.
pub(crate) fn collect_setting(
    name: &str,
    value: &Word,
    is_exported: bool,
    part: &mut Part,
    depth: u32,
) {
    match sets(name, value) {
        Sets::Nothing => {}
        Sets::Anything => {
            part.unclear.get_or_insert("it sets a variable that decides what runs");
        }
        Sets::Command(text) => collect_script(&text, part, depth),
        Sets::Options(program, options) => {
            let words = program.split(' ').chain(options.split_whitespace());
            let words: Vec<Word> = words.map(|it| Word::Exact(it.to_owned())).collect();
            collect(&words, part, depth + 1);
        }
        Sets::Perhaps(text) if is_exported && depth <= NESTED => {
            let mut perhaps = Part::default();
            collect_script(&text, &mut perhaps, depth + 1);
            let known = |words: &Vec<Word>| words.iter().all(|word| word.exact().is_some());
            part.reach.extend(perhaps.reach.into_iter().filter(known));
        }
        Sets::Perhaps(_) => {}
    }
}

/// Adds what `words` may run, if any argument may be a program or a command.
fn collect_arguments(words: &[Word], part: &mut Part, depth: u32) {
    if does_what_it_is_told(words) {
        part.unclear.get_or_insert("it may run other programs");
    }
    let as_shell = reads_as_shell(words);
    let is_script = |text: &str| {
        let special = |char: char| "\\'\"$`;|&<>(){}*?[".contains(char);
        // An expansion may become blanks; but `A=$b` is usually a setting.
        text.contains(char::is_whitespace)
            || text.contains(['$', '`']) && !text.contains('=')
            || as_shell && text.contains(special)
    };
    // `xargs` adds words from its input, which may be anywhere.
    let adds = words[0].program().is_some_and(|name| base(name) == "xargs");
    if adds {
        part.unclear.get_or_insert("it runs what its input says");
    }
    for at in 1..words.len() {
        let Some(text) = words[at].exact() else {
            part.unclear.get_or_insert("it runs something that is known to the shell only");
            continue;
        };
        if is_input(text) {
            part.unclear.get_or_insert("it runs what its input says");
        }
        // `--checkpoint-action=exec=x`
        let text = match text.rsplit_once("exec=") {
            Some((_, command)) => {
                part.reach.push(vec![Word::Exact(command.to_owned())]);
                command
            }
            None => text,
        };
        if is_script(text) {
            if text.starts_with('-') {
                part.unclear.get_or_insert("an option of it may be a command");
            }
            // `ProxyCommand=rm x` can be read in both ways.
            for text in [Some(text), text.split_once('=').map(|(_, value)| value)] {
                collect_script(text.unwrap_or_default(), part, depth);
            }
        } else if text.starts_with('-') {
            // `--to-command=x`, `-Ix`
            let values = [text.split_once('=').map(|(_, value)| value), text.get(2..)];
            let programs = values.into_iter().flatten().filter(|value| !value.is_empty());
            part.reach.extend(programs.map(|it| vec![Word::Exact(it.to_owned())]));
        } else {
            let inner = words[at..].to_vec();
            match runs(&inner) {
                Runs::Itself => part.reach.push(inner),
                Runs::Anything => {
                    part.reach.push(inner);
                    part.unclear.get_or_insert("it may run other programs");
                }
                _ => collect(&inner, part, depth + 1),
            }
        }
    }
}
