//! The words of a shell text, and the paths that they may mean.
//!
//! The effect of a shell text cannot be predicted, so this code includes too many paths rather than too few. A
//! variable may stand for any likely folder, and each word is tried in each folder that the text enters.

use super::is_below;
use super::named::plain;
use super::path_trace::PathTrace;
use super::spelled::{decoded, spelled_out};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Characters between words in a line of shell.
pub(super) const BETWEEN: &[char] = &[
    ' ', '\t', '\n', '\r', '!', '\'', '"', '`', ';', '|', '&', '(', ')', '<', '>', '$', '{', '}',
    '=', ',', '[', ']',
];

/// Characters after which a command begins.
const BEGINS: &[char] = &['\n', '!', '`', ';', '|', '&', '(', '{'];

/// Characters that end a command.
const ENDS: &[char] = &['\n', ';', '|', '&'];

/// The maximum number of words to check in a text. If there are more, every program and script in the
/// workspace counts whose name occurs somewhere in the text.
pub(super) const WORDS: usize = 20_000;

/// The most bytes of a path for the kernel: no longer word names a file.
const LONGEST: usize = 4_096;

/// The maximum number of folders to try words in, besides those that a text names from where it runs.
const ENTERED: usize = 5_000;

/// How many folders a text can enter one from another, in any order.
const DEEP: usize = 4;

/// Words after which the next word is a folder in which the rest happens. The last is a setting of lefthook.
const ENTERS: [&str; 8] =
    ["cd", "pushd", "-C", "--directory", "--cwd", "--chdir", "--dir", "root:"];

/// The operators between the name of a variable and its default.
const DEFAULTS: [&str; 7] = [":-", ":+", ":?", "-", "+", "?", ":"];

/// A word and its context.
#[derive(Clone, Copy)]
pub(super) struct Word<'t> {
    pub text: &'t str,
    /// It is the first word of a command.
    pub is_begun: bool,
    /// It may be the name of a program, which the shell looks up in PATH.
    is_program: bool,
    /// It is a variable, and no path continues after it.
    pub is_variable: bool,
    /// The output of the command before it is its input.
    pub is_piped: bool,
    /// Nothing separates it from the word before it.
    pub is_joined: bool,
    /// It is assigned to a variable, or is part of such a value.
    is_value: bool,
    /// The same, but no command substitution is around it.
    pub is_assigned: bool,
    /// A test begins with it, as in `[ -f x ]`.
    pub is_tested: bool,
    /// It is a file that a command writes its output to.
    pub is_output: bool,
    /// It is the first word of a command only if the quotes before it do not count.
    pub is_quoted: bool,
    /// How many command substitutions it is in.
    pub depth: usize,
    /// The depth of the command that ended before it, if one did.
    pub ended: Option<usize>,
    /// The same if the quotes around the end of the command do not count.
    pub ended_in_quotes: Option<usize>,
}

/// The first `most` words of a text. A word that begins with a variable appears twice: as it is, and
/// without the variable.
pub(super) fn words(text: &str, most: usize) -> Vec<Word<'_>> {
    let mut all = Vec::new();
    let (mut rest, mut at_start, mut at_escape) = (text, true, false);
    let (mut depth, mut in_ticks) = (0_usize, false);
    // The depth at which a value is assigned.
    let mut value: Option<usize> = None;
    let mut is_default = false;
    // The quotes around the words, for each depth.
    let mut quotes: Vec<Option<char>> = vec![None];
    while all.len() < most {
        let after = rest.trim_start_matches(BETWEEN);
        let between = &rest[..rest.len() - after.len()];
        let (word, after) = after.split_at(after.find(BETWEEN).unwrap_or(after.len()));
        if word.is_empty() {
            break;
        }
        let (mut ended, mut ended_in_quotes): (Option<usize>, Option<usize>) = (None, None);
        let (mut is_begun, mut last) = (at_start, ' ');
        let (mut is_tested, mut is_output) = (false, false);
        let mut is_plain = at_start;
        let mut before = at_escape;
        for (at, letter) in between.char_indices() {
            // `${` begins no command, nor does the end of one in the place of a word.
            let is_passing = letter == '{' && last == '$' || letter == '`' && in_ticks;
            // `>&2` begins and ends none.
            let is_redirected = letter == '&' && ['<', '>'].contains(&last);
            // `x) command`, a case.
            let is_case = letter == ')' && depth == 0 && quotes[0].is_none();
            let begins = BEGINS.contains(&letter) && !is_passing && !is_redirected || is_case;
            is_begun |= begins;
            let is_end = ENDS.contains(&letter) && !is_redirected;
            let is_command = letter == '\n' || letter == '(' && last == '$' || letter == '`';
            let is_quoted = quotes[depth].is_some();
            let is_in_quotes = is_quoted && !is_command;
            is_plain |= begins && !is_in_quotes;
            match letter {
                '\'' | '"' if !before => {
                    quotes[depth] = match quotes[depth] {
                        Some(quote) if quote == letter => None,
                        None => Some(letter),
                        other => other,
                    }
                }
                // Texts with an odd number of quotes, as in a comment, are confused for one line at most.
                '\n' => quotes[depth] = None,
                _ => {}
            }
            before = false;
            (is_tested, is_output) = match letter {
                // As the shell has it. `["x"]` is a list of another language.
                '[' if between[at + 1..].starts_with([' ', '\t', '[']) => (true, false),
                '>' => (is_tested, true),
                _ if BEGINS.contains(&letter) && !is_redirected => (false, false),
                _ => (is_tested, is_output),
            };
            let is_literal = is_quoted && last != '$';
            last = letter;
            match letter {
                '(' | ')' if is_literal => {}
                '(' => depth += 1,
                ')' => depth = depth.saturating_sub(1),
                '`' if in_ticks => depth = depth.saturating_sub(1),
                '`' => depth += 1,
                '=' => value = Some(value.map_or(depth, |it| it.min(depth))),
                _ => {}
            }
            in_ticks ^= letter == '`';
            quotes.resize(depth + 1, None);
            if is_end {
                let end = if is_in_quotes { &mut ended_in_quotes } else { &mut ended };
                *end = Some(end.map_or(depth, |it| it.min(depth)));
            }
            let is_blank = letter.is_whitespace() || is_end;
            value = value.filter(|start| !(is_blank && depth <= *start));
        }
        let is_first = at_start || between.contains(BEGINS);
        // A word in quotes, or after `<`, may be anything.
        let is_program = is_first && !between.contains(['\'', '"', '<', '>', '=']);
        let is_assigned = value == Some(depth);
        is_tested &= is_begun;
        let is_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
        let is_expanded = between.ends_with('$') || between.ends_with("${");
        let is_whole = word.chars().all(is_name) || ["@", "*"].contains(&word);
        let is_variable =
            is_expanded && is_whole && !after.trim_start_matches(['}', '"']).starts_with('/');
        let is_piped = between.contains('|') && !between.contains("||");
        let is_joined = !between.contains(|it: char| it.is_whitespace() || ENDS.contains(&it));
        let is_value = value.is_some() || between.contains('=') || is_joined && is_default;
        let found = Word {
            text: word,
            is_begun,
            is_program,
            is_variable,
            is_piped,
            is_joined,
            is_value,
            is_assigned,
            is_tested,
            is_output,
            is_quoted: !is_plain,
            depth,
            ended,
            ended_in_quotes,
        };
        all.push(found);
        is_default = false;
        if between.ends_with(['$', '{']) {
            let text = word.trim_start_matches(is_name);
            // `${X:-$Y/x}`: the default is the next word.
            is_default = is_expanded && DEFAULTS.contains(&text);
            let default = DEFAULTS.iter().find_map(|it| text.strip_prefix(it));
            // `.` is a folder here.
            let default = default.filter(|it| is_expanded && !it.trim_matches('.').is_empty());
            for text in [Some(text), default].into_iter().flatten().filter(|it| !it.is_empty()) {
                let (is_begun, is_program) = (false, false);
                let (ended, ended_in_quotes) = (None, None);
                let (is_variable, is_piped, is_joined) = (false, false, true);
                // A default may be the folder of what follows.
                let is_value = found.is_value || Some(text) == default;
                all.push(Word {
                    text,
                    is_begun,
                    is_program,
                    is_variable,
                    is_piped,
                    is_joined,
                    is_value,
                    ended,
                    ended_in_quotes,
                    ..found
                });
            }
        }
        (rest, at_start, at_escape) = (after, false, word.ends_with('\\'));
    }
    all
}

/// The text without quotes and `\`: a path may consist of several quoted parts and continue in the next line. In
/// quotes, characters that end a command are left out, too.
pub(super) fn without_quotes(text: &str) -> String {
    let mut bare = String::with_capacity(text.len());
    // The quote that is open, for each command that is in the place of a word.
    let mut open: Vec<Option<char>> = vec![None];
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        let quote = open.last().copied().flatten();
        match letter {
            '\\' if letters.peek() == Some(&'\n') => {
                letters.next();
            }
            '$' if quote.is_none() && letters.peek() == Some(&'\'') => {
                letters.next();
                bare.push_str(&decoded(&mut letters));
            }
            '\\' => bare.extend(letters.next_if(|next| !"'\"".contains(*next))),
            '\'' | '"' if quote.is_none() || quote == Some(letter) => {
                let next = if quote.is_none() { Some(letter) } else { None };
                open.last_mut().into_iter().for_each(|it| *it = next);
            }
            '\'' | '"' => {}
            '$' if quote != Some('\'') && letters.peek() == Some(&'(') => {
                bare.extend(['$', '(']);
                letters.next();
                open.push(None);
            }
            ')' if quote.is_none() => {
                bare.push(letter);
                if open.len() > 1 {
                    open.pop();
                }
            }
            '|' | ';' | '&' if quote.is_some() => bare.push(' '),
            '\n' => {
                bare.push(letter);
                open.last_mut().into_iter().for_each(|it| *it = None);
            }
            other => bare.push(other),
        }
    }
    bare
}

/// Moves lines that are comments to the end of the text, because they matter least.
pub(super) fn with_comments_last(text: &str) -> String {
    let is_comment = |line: &&str| line.trim_start().starts_with('#');
    let (comments, lines): (Vec<&str>, Vec<&str>) = text.lines().partition(is_comment);
    lines.into_iter().chain(comments).flat_map(|line| [line, "\n"]).collect()
}

/// The quoted parts of a text that contain spaces.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    let parts = ['"', '\''].into_iter().flat_map(move |quote| text.split(quote).skip(1).step_by(2));
    let parts = parts.filter(|part| part.contains(' ') && !part.contains('\n'));
    // The part before the first `/` may be a variable or a command.
    let parts = parts.map(|part| match part.find(['$', '`']) {
        Some(_) => part.find('/').map_or("", |at| &part[at..]),
        None => part,
    });
    parts.filter(|part| !part.contains(['$', '`'])).take(WORDS)
}

/// The paths in a text that contain spaces: in quotes, or after `\`.
pub(super) fn spaced(text: &str) -> Vec<String> {
    // Stands for such a space. No path contains it.
    const SPACE: &str = "\u{1}";
    let joined = text.replace("\\ ", SPACE).replace(['"', '\'', '\\'], "");
    let escaped = words(&joined, WORDS).into_iter().map(|word| word.text);
    let escaped = escaped.filter(|word| word.contains(SPACE)).map(|it| it.replace(SPACE, " "));
    quoted(text).map(str::to_owned).chain(escaped).collect()
}

/// Where texts run, and which paths matter.
pub(super) struct Places<'p> {
    /// Only paths in here matter.
    pub workspace: &'p Path,
    pub homes: &'p [PathBuf],
    /// Folders in which the text may run, or for which variables may stand.
    pub folders: Vec<PathBuf>,
    /// A file that is about to be made, and counts as there, with all folders around it.
    pub made: Option<&'p Path>,
}

impl Places<'_> {
    /// True for a file, and where one is about to be made, or would be behind links that lead nowhere yet.
    pub(super) fn is_file(&self, path: &Path) -> bool {
        match path.metadata() {
            Ok(found) => found.is_file(),
            Err(_) => self.is_made(path) || PathTrace::to(path, self.workspace).is_lost(),
        }
    }

    /// The same for a folder.
    fn is_folder(&self, path: &Path) -> bool {
        let is_around = || self.made.is_some_and(|made| is_below(made, path));
        match path.metadata() {
            Ok(found) => found.is_dir(),
            Err(_) => is_around() || PathTrace::to(path, self.workspace).is_lost(),
        }
    }

    fn is_made(&self, path: &Path) -> bool {
        self.made.is_some_and(|made| is_below(made, path) && is_below(path, made))
    }

    /// Files that a line names which is run as it stands, as in a setting. The name of a program without a folder
    /// is looked for on PATH.
    pub(super) fn named_by_line(&self, line: &str) -> Vec<PathBuf> {
        let bare = line.replace("\\\n", "").replace(['"', '\'', '\\'], "");
        let spelled = spelled_out(line);
        let mut all = words(line, WORDS);
        // A path may consist of several quoted parts.
        all.extend(words(&bare, WORDS));
        all.extend(spelled.iter().flat_map(|it| words(it, WORDS)));
        let spaced = spaced(line);
        let folders = self.entered(&all, &spaced);
        let named = all.iter().filter(|word| !word.is_program || word.text.contains('/'));
        let named = named.map(|word| word.text).chain(spaced.iter().map(String::as_str));
        let places = named.flat_map(|word| self.places(word, &folders));
        places.collect::<BTreeSet<_>>().into_iter().filter(|path| self.is_file(path)).collect()
    }

    /// The folders in which this text runs, and those that it enters.
    pub(super) fn folders_of(&self, text: &str) -> BTreeSet<PathBuf> {
        self.entered(&words(text, WORDS), &spaced(text))
    }

    /// The folders in which a text runs, and those that it enters.
    pub(super) fn entered(&self, words: &[Word], spaced: &[String]) -> BTreeSet<PathBuf> {
        let mut folders: BTreeSet<PathBuf> = self.folders.iter().map(|it| plain(it)).collect();
        let named = |words: &BTreeSet<&str>, from: &BTreeSet<PathBuf>| -> BTreeSet<PathBuf> {
            let places = words.iter().flat_map(|word| self.places(word, from));
            places.filter(|path| self.is_folder(path)).collect()
        };
        let enters = words.iter().enumerate().filter(|(_, word)| ENTERS.contains(&word.text));
        // Up to the end of the command: a command substitution has words of its own.
        let entered: Vec<BTreeSet<&str>> = enters
            .map(|(at, start)| {
                let is_over = |word: &&Word| {
                    word.ended.or(word.ended_in_quotes).is_some_and(|it| it <= start.depth)
                };
                let meant = words[at + 1..].iter().take_while(|word| !is_over(word));
                meant.map(|word| word.text).collect()
            })
            .collect();
        // In the order of the text, each from where the previous one led.
        let mut at = folders.clone();
        let mut passed = BTreeSet::new();
        for next in &entered {
            let led: BTreeSet<PathBuf> = named(next, &at).into_iter().take(ENTERED).collect();
            if !led.is_empty() && passed.len() < ENTERED {
                passed.extend(led.iter().cloned());
                at = led;
            }
        }
        let entered: BTreeSet<&str> =
            entered.into_iter().flatten().chain(spaced.iter().map(String::as_str)).collect();
        // First all folders entered from where the text runs, then those entered from there. So folders
        // with the names of other words, which an agent may have made, cannot displace any of them.
        let mut last = folders.clone();
        for _ in 0..DEEP {
            last = named(&entered, &last).difference(&folders).cloned().collect();
            let room = ENTERED.saturating_sub(folders.len());
            folders.extend(last.iter().take(room).cloned());
        }
        folders.extend(passed);
        let given = words.iter().filter(|word| word.is_value).map(|word| word.text).collect();
        let given = named(&given, &folders);
        folders.extend(given);
        folders
    }

    /// The paths in the workspace that a word may mean.
    pub(super) fn places(&self, word: &str, folders: &BTreeSet<PathBuf>) -> BTreeSet<PathBuf> {
        // `$(git rev-parse --show-toplevel)/tools/x` leaves a path that only looks absolute, and
        // `$(dirname "$0")/../x` one that begins anywhere.
        let word = word.strip_prefix("~+/").unwrap_or(word);
        if word.len() > LONGEST {
            return BTreeSet::new();
        }
        let below = word.trim_start_matches('/');
        let mut last = below;
        while let Some(rest) = ["../", "./", "/"].iter().find_map(|it| last.strip_prefix(it)) {
            last = rest;
        }
        let around = folders.iter().chain(self.homes);
        let mut places: Vec<PathBuf> =
            around.flat_map(|folder| [below, last].map(|it| folder.join(it))).collect();
        places.extend(at_home(word, self.homes));
        if word.starts_with('/') {
            places.push(PathBuf::from(word));
        }
        // A text may enter a folder around the workspace first.
        let is_inside =
            |path: &PathBuf| path.starts_with(self.workspace) || self.workspace.starts_with(path);
        // There may be links on the way to the workspace.
        let linked = places.iter().filter(|path| !is_inside(&plain(path))).filter(is_at);
        let linked: Vec<PathBuf> =
            linked.flat_map(|path| PathTrace::to(path, Path::new("/")).places).collect();
        let places = places.iter().chain(&linked).map(|path| plain(path));
        places.filter(is_inside).collect()
    }
}

/// The paths that `~/x` or `~user/x` means. Empty for any other value.
pub(super) fn at_home(value: &str, homes: &[PathBuf]) -> Vec<PathBuf> {
    let Some((user, below)) = value.strip_prefix('~').and_then(|it| it.split_once('/')) else {
        return Vec::new();
    };
    if user.is_empty() {
        return homes.iter().map(|home| home.join(below)).collect();
    }
    let users = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let of_user = users.lines().filter_map(|line| {
        let mut fields = line.split(':');
        (fields.next()? == user).then(|| fields.nth(4).map(PathBuf::from))?
    });
    // Not all machines list all users in this file.
    of_user.chain([Path::new("/home").join(user)]).map(|home| home.join(below)).collect()
}

/// True where something is, also a link that leads nowhere.
fn is_at(path: &&PathBuf) -> bool {
    path.symlink_metadata().is_ok()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_program_without_a_folder_is_none_of_the_checkout() {
        for (line, expected) in [
            ("store", vec![]),
            ("delta --dark", vec!["--dark"]),
            ("!npm test", vec!["test"]),
            ("!test -f a && run b | less; (sh c)", vec!["-f", "a", "b", "c"]),
            ("tools/x y", vec!["tools/x", "y"]),
            ("!./x; a/b", vec!["./x", "a/b"]),
            ("sh < x", vec!["x"]),
            ("python -c 'exec(open(\"x.py\").read())'", vec!["-c", "exec", "x.py", ".read"]),
            ("$(git rev-parse)/a.sh b", vec!["rev-parse", "/a.sh", "b"]),
            ("$ROOT/a ${B}/c \"$D\"/e", vec!["ROOT/a", "/a", "/c", "D", "/e"]),
            ("A=b c", vec!["b", "c"]),
            (" 'my tool' x", vec!["my", "tool", "x"]),
            ("", vec![]),
        ] {
            let all = words(line, WORDS);
            let named = all.iter().filter(|word| !word.is_program || word.text.contains('/'));
            let named: Vec<&str> = named.map(|word| word.text).collect();
            assert_eq!(named, expected, "{line}");
        }
    }

    #[test]
    fn the_home_of_another_user_is_found() {
        assert_eq!(at_home("~root/x/y", &[])[0], Path::new("/root/x/y"));
        assert_eq!(at_home("~nobody-at-all/x", &[]), [Path::new("/home/nobody-at-all/x")]);
        assert_eq!(at_home("~/x", &["/a".into(), "/b".into()]).len(), 2);
        assert!(at_home("x/~/y", &[]).is_empty() && at_home("~root", &[]).is_empty());
    }

    /// An agent can make folders with the names of any words, as many as it likes.
    #[test]
    fn folders_that_are_in_the_way_hide_no_other() {
        let folder = tempfile::tempdir().unwrap();
        let work = folder.path().canonicalize().unwrap();
        let script =
            "MODE=fast\nLEVEL=error\nDIR=scripts\ncd \"$DIR\" && ./check.sh\ncd a; cd b; ./c.sh";
        let mut around = vec![work.clone(), work.join(".git")];
        for word in ["fast", "error", "git", "a", "scripts", "b"] {
            let deeper: Vec<PathBuf> = around.iter().map(|folder| folder.join(word)).collect();
            deeper.iter().for_each(|folder| fs::create_dir_all(folder).unwrap());
            around.extend(deeper);
        }
        fs::write(work.join("scripts/check.sh"), "x").unwrap();
        fs::write(work.join("a/b/c.sh"), "x").unwrap();
        let places =
            Places { workspace: &work, homes: &[], folders: vec![work.clone()], made: None };
        let found = places.run_by_script(script);
        assert!(found.contains(&work.join("scripts/check.sh")), "{found:?}");
        assert!(found.contains(&work.join("a/b/c.sh")), "{found:?}");
    }
}
