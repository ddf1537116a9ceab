//! The paths that a shell script names, as far as its words show.
//!
//! The effect of a shell text cannot be predicted, so this code includes too many paths rather than too few. A
//! variable may stand for any likely folder, and each word is tried in each folder that the text enters.

use super::is_below;
use super::named::plain;
use super::tree::text_at;
use super::way::Way;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::ffi::OsStr;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Characters between words in a line of shell.
const BETWEEN: &[char] = &[
    ' ', '\t', '\n', '\r', '!', '\'', '"', '`', ';', '|', '&', '(', ')', '<', '>', '$', '{', '}',
    '=', ',', '[', ']',
];

/// Characters after which a command begins.
const BEGINS: &[char] = &['\n', '!', '`', ';', '|', '&', '(', '{'];

/// Characters that end a command.
const ENDS: &[char] = &['\n', ';', '|', '&'];

/// The maximum number of words to check in a text. If there are more, every program and script in the
/// workspace counts whose name occurs somewhere in the text.
const WORDS: usize = 20_000;

/// The same for a binary program, whose words are not shell.
const WORDS_OF_PROGRAM: usize = 5_000;

/// The maximum number of folders to try words in, besides those that a text names from where it runs.
const ENTERED: usize = 5_000;

/// How many folders a text can enter one from another, in any order.
const DEEP: usize = 4;

/// The maximum number of folders to search for programs and scripts.
const FOLDERS: usize = 200_000;

/// Words after which the next word is a folder in which the rest happens.
const ENTERS: [&str; 4] = ["cd", "pushd", "-C", "--directory"];

/// Programs that run files which need not be executable.
const INTERPRETERS: [&str; 29] = [
    ".", "Rscript", "ash", "awk", "bash", "bun", "dash", "deno", "expect", "fish", "gawk", "julia",
    "ksh", "lua", "make", "mawk", "mksh", "node", "nodejs", "perl", "php", "pwsh", "python",
    "ruby", "sh", "source", "tclsh", "tsx", "zsh",
];

/// File extensions of scripts.
const SCRIPTS: [&str; 20] = [
    "awk", "bash", "cjs", "cts", "fish", "js", "ksh", "lua", "mjs", "mk", "mts", "php", "pl",
    "ps1", "py", "rb", "sed", "sh", "ts", "zsh",
];

/// File extensions that no shell runs: texts, settings, and code that is built first. People and agents change
/// such files every day.
const DATA: [&str; 53] = [
    "adoc", "c", "cc", "cpp", "cs", "css", "csv", "dart", "gif", "go", "h", "hpp", "hs", "htm",
    "html", "ico", "ini", "java", "jpg", "json", "json5", "jsonc", "jsx", "kt", "less", "lock",
    "log", "md", "mdx", "mod", "pdf", "png", "po", "proto", "rs", "rst", "sass", "scala", "scss",
    "sql", "sum", "svelte", "svg", "swift", "tf", "toml", "tsv", "tsx", "txt", "vue", "xml",
    "yaml", "yml",
];

/// The maximum size of a file that counts as a script because a variable holds its name.
const LARGEST: u64 = 1 << 20;

/// The operators between the name of a variable and its default.
const DEFAULTS: [&str; 7] = [":-", ":+", ":?", "-", "+", "?", ":"];

/// A word and its context.
#[derive(Clone, Copy)]
struct Word<'t> {
    text: &'t str,
    /// It is the first word of a command.
    is_begun: bool,
    /// It may be the name of a program, which the shell looks up in PATH.
    is_program: bool,
    /// It is a variable, and no path continues after it.
    is_variable: bool,
    /// The output of the command before it is its input.
    is_piped: bool,
    /// Nothing separates it from the word before it.
    is_joined: bool,
    /// It is assigned to a variable, or is part of such a value.
    is_value: bool,
    /// How many command substitutions it is in.
    depth: usize,
    /// The depth of the command that ended before it, if one did.
    ended: Option<usize>,
}

/// The first `most` words of a text. A word that begins with a variable appears twice: as it is, and
/// without the variable.
fn words(text: &str, most: usize) -> Vec<Word<'_>> {
    let mut all = Vec::new();
    let (mut rest, mut at_start) = (text, true);
    let (mut depth, mut in_ticks) = (0_usize, false);
    // The depth at which a value is assigned.
    let mut value: Option<usize> = None;
    while all.len() < most {
        let after = rest.trim_start_matches(BETWEEN);
        let between = &rest[..rest.len() - after.len()];
        let (word, after) = after.split_at(after.find(BETWEEN).unwrap_or(after.len()));
        if word.is_empty() {
            break;
        }
        let mut ended: Option<usize> = None;
        let (mut is_begun, mut last) = (at_start, ' ');
        for letter in between.chars() {
            // `${` begins no command, nor does the end of one in the place of a word.
            let is_passing = letter == '{' && last == '$' || letter == '`' && in_ticks;
            is_begun |= BEGINS.contains(&letter) && !is_passing;
            last = letter;
            match letter {
                '(' => depth += 1,
                ')' => depth = depth.saturating_sub(1),
                '`' if in_ticks => depth = depth.saturating_sub(1),
                '`' => depth += 1,
                '=' => value = Some(value.map_or(depth, |it| it.min(depth))),
                _ => {}
            }
            in_ticks ^= letter == '`';
            if ENDS.contains(&letter) {
                ended = Some(ended.map_or(depth, |it| it.min(depth)));
            }
            let is_blank = letter.is_whitespace() || ENDS.contains(&letter);
            value = value.filter(|start| !(is_blank && depth <= *start));
        }
        let is_first = at_start || between.contains(BEGINS);
        // A word in quotes, or after `<`, may be anything.
        let is_program = is_first && !between.contains(['\'', '"', '<', '>', '=']);
        let is_value = value.is_some() || between.contains('=');
        let is_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
        let is_expanded = between.ends_with('$') || between.ends_with("${");
        let is_whole = word.chars().all(is_name) || ["@", "*"].contains(&word);
        let is_variable =
            is_expanded && is_whole && !after.trim_start_matches(['}', '"']).starts_with('/');
        let is_piped = between.contains('|') && !between.contains("||");
        let is_joined = !between.contains(|it: char| it.is_whitespace() || ENDS.contains(&it));
        let found = Word {
            text: word,
            is_begun,
            is_program,
            is_variable,
            is_piped,
            is_joined,
            is_value,
            depth,
            ended,
        };
        all.push(found);
        if between.ends_with(['$', '{']) {
            let text = word.trim_start_matches(is_name);
            let default = DEFAULTS.iter().find_map(|it| text.strip_prefix(it));
            // `.` is a folder here.
            let default = default.filter(|it| is_expanded && !it.trim_matches('.').is_empty());
            for text in [Some(text), default].into_iter().flatten().filter(|it| !it.is_empty()) {
                let (is_begun, is_program, ended) = (false, false, None);
                let (is_variable, is_piped, is_joined) = (false, false, true);
                all.push(Word {
                    text,
                    is_begun,
                    is_program,
                    is_variable,
                    is_piped,
                    is_joined,
                    ended,
                    ..found
                });
            }
        }
        (rest, at_start) = (after, false);
    }
    all
}

/// Moves lines that are comments to the end of the text, because they matter least.
fn with_comments_last(text: &str) -> String {
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
fn spaced(text: &str) -> Vec<String> {
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
    fn is_file(&self, path: &Path) -> bool {
        match path.metadata() {
            Ok(found) => found.is_file(),
            Err(_) => self.is_made(path) || Way::to(path, self.workspace).is_lost(),
        }
    }

    /// The same for a folder.
    fn is_folder(&self, path: &Path) -> bool {
        let is_around = || self.made.is_some_and(|made| is_below(made, path));
        match path.metadata() {
            Ok(found) => found.is_dir(),
            Err(_) => is_around() || Way::to(path, self.workspace).is_lost(),
        }
    }

    fn is_made(&self, path: &Path) -> bool {
        self.made.is_some_and(|made| is_below(made, path) && is_below(path, made))
    }

    /// True for what a script may run that does not say with what: nobody knows what will be at the end of a
    /// link.
    fn may_be_run(&self, path: &Path) -> bool {
        is_made_to_run(path) || Way::to(path, self.workspace).is_lost()
    }

    /// Files that a line names which is run as it stands, as in a setting. The name of a program without a folder
    /// is looked for on PATH.
    pub(super) fn named_by_line(&self, line: &str) -> Vec<PathBuf> {
        let bare = line.replace(['"', '\'', '\\'], "");
        let mut all = words(line, WORDS);
        // A path may consist of several quoted parts.
        all.extend(words(&bare, WORDS));
        let spaced = spaced(line);
        let folders = self.entered(&all, &spaced);
        let named = all.iter().filter(|word| !word.is_program || word.text.contains('/'));
        let named = named.map(|word| word.text).chain(spaced.iter().map(String::as_str));
        let places = named.flat_map(|word| self.places(word, &folders));
        places.collect::<BTreeSet<_>>().into_iter().filter(|path| self.is_file(path)).collect()
    }

    /// Files that a script runs: programs, scripts, and files that it passes to an interpreter.
    pub(super) fn run_by_script(&self, text: &str) -> Vec<PathBuf> {
        let text = &with_comments_last(text);
        let is_text = !text.contains('\0');
        let most = if is_text { WORDS } else { WORDS_OF_PROGRAM };
        let bare = text.replace("\\\n", " ").replace(['"', '\'', '\\'], "");
        let mut all = words(text, most);
        let is_long = is_text && all.len() >= most;
        // A path may consist of several quoted parts.
        all.extend(words(&bare, most));
        let spaced = spaced(text);
        let folders = self.entered(&all, &spaced);
        let (mut run, mut others) = (BTreeSet::new(), BTreeSet::new());
        // Whether a program that runs files is given the words here, in each of the commands around.
        let mut given = vec![false];
        // Something is run whose name is in a variable, or which comes from a command.
        let mut is_loose = false;
        let mut known: HashMap<&str, Vec<PathBuf>> = HashMap::new();
        for word in &all {
            let is_path = word.is_joined && word.text.starts_with('/');
            let is_back = given.len() > word.depth + 1;
            is_loose |= is_back && given[word.depth] && !is_path;
            given.iter_mut().skip(word.ended.unwrap_or(usize::MAX)).for_each(|it| *it = false);
            given.resize(word.depth + 1, false);
            let Some(is_given) = given.last_mut() else { continue };
            *is_given &= !word.is_begun;
            is_loose |= word.is_variable && (*is_given || word.is_begun) || word.text == "eval";
            // It is not known whether that is what it runs, or an option.
            *is_given &= !(word.is_variable && is_text);
            if is_interpreter(word.text) {
                is_loose |= word.is_piped;
                *is_given = true;
                continue;
            }
            // What follows is a text to be run, and what that is about.
            *is_given &= word.text != "-c";
            let files = known.entry(word.text).or_insert_with(|| {
                let places = self.places(word.text, &folders).into_iter();
                places.filter(|path| self.is_file(path)).collect()
            });
            // The first file is what it runs; the others are what that is about.
            let is_run = *is_given;
            *is_given &= files.is_empty();
            let files = files.iter().cloned();
            let (its, rest): (Vec<_>, Vec<_>) =
                files.partition(|path| is_run || self.may_be_run(path));
            run.extend(its);
            others.extend(rest);
        }
        is_loose |= given.iter().rev().skip(1).any(|it| *it);
        if is_text && is_loose {
            run.extend(others.into_iter().filter(|path| !is_known_data(path)));
        }
        let places = spaced.iter().flat_map(|word| self.places(word, &folders));
        run.extend(places.filter(|path| self.is_file(path) && self.may_be_run(path)));
        if is_long {
            run.extend(self.with_names_in(text));
        }
        run.into_iter().collect()
    }

    /// All programs and scripts in the workspace whose names occur somewhere in the text.
    fn with_names_in(&self, text: &str) -> Vec<PathBuf> {
        let ends = |letter: char| BETWEEN.contains(&letter) || "/\\:".contains(letter);
        let names: HashSet<&OsStr> = text.split(ends).map(OsStr::new).collect();
        let is_named = |path: &&Path| path.file_name().is_some_and(|name| names.contains(name));
        let made = self.made.filter(is_named).filter(|path| is_made_to_run(path));
        let mut found: Vec<PathBuf> = made.map(Path::to_owned).into_iter().collect();
        let mut ahead = vec![self.workspace.to_owned()];
        let mut seen = 0;
        while let Some(folder) = ahead.pop().filter(|_| seen < FOLDERS) {
            seen += 1;
            for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
                let Ok(kind) = entry.file_type() else { continue };
                let path = entry.path();
                if kind.is_dir() {
                    ahead.push(path);
                } else if names.contains(&*entry.file_name()) && is_made_to_run(&path) {
                    found.push(path);
                }
            }
        }
        found
    }

    /// The folders in which a text runs, and those that it enters.
    fn entered(&self, words: &[Word], spaced: &[String]) -> BTreeSet<PathBuf> {
        let mut folders: BTreeSet<PathBuf> = self.folders.iter().map(|it| plain(it)).collect();
        let named = |words: &BTreeSet<&str>, from: &BTreeSet<PathBuf>| -> BTreeSet<PathBuf> {
            let places = words.iter().flat_map(|word| self.places(word, from));
            places.filter(|path| self.is_folder(path)).collect()
        };
        let enters = words.iter().enumerate().filter(|(_, word)| ENTERS.contains(&word.text));
        // Up to the end of the command: a command substitution has words of its own.
        let entered: Vec<BTreeSet<&str>> = enters
            .map(|(at, start)| {
                let is_over = |word: &&Word| word.ended.is_some_and(|it| it <= start.depth);
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
    fn places(&self, word: &str, folders: &BTreeSet<PathBuf>) -> BTreeSet<PathBuf> {
        // `$(git rev-parse --show-toplevel)/tools/x` leaves a path that only looks absolute, and
        // `$(dirname "$0")/../x` one that begins anywhere.
        let word = word.strip_prefix("~+/").unwrap_or(word);
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
        let is_inside = |path: &PathBuf| path.starts_with(self.workspace);
        // There may be links on the way to the workspace.
        let linked = places.iter().filter(|path| !is_inside(&plain(path))).filter(is_at);
        let linked: Vec<PathBuf> =
            linked.flat_map(|path| Way::to(path, Path::new("/")).places).collect();
        let places = places.iter().chain(&linked).map(|path| plain(path));
        places.filter(|path| is_inside(path) && path != self.workspace).collect()
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

/// True for a program that runs a file, whatever its version is.
fn is_interpreter(word: &str) -> bool {
    let name = word.rsplit('/').next().unwrap_or(word);
    let name = if word == "." {
        word
    } else {
        name.trim_end_matches(|it: char| "0123456789.".contains(it))
    };
    INTERPRETERS.contains(&name)
}

/// True for a file that is not run, whatever a script does with its name: by its ending, by its size, or as
/// a file of the kind of `README`, `Makefile` and `.gitignore`.
fn is_known_data(path: &Path) -> bool {
    let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
    let end = path.extension().and_then(OsStr::to_str).unwrap_or_default().to_ascii_lowercase();
    let is_usual = name.starts_with('.')
        || name.ends_with("file")
        || !name.contains(|letter: char| letter.is_lowercase());
    let is_large = || path.metadata().is_ok_and(|found| found.len() > LARGEST);
    is_usual || DATA.contains(&end.as_str()) || is_large()
}

/// True for a program, and for a file that some other program is made to run.
fn is_made_to_run(path: &Path) -> bool {
    let is_program = path.metadata().is_ok_and(|found| found.mode() & 0o111 != 0);
    let is_script = || {
        let end = path.extension().and_then(|end| end.to_str()).unwrap_or_default();
        SCRIPTS.contains(&end.to_ascii_lowercase().as_str())
    };
    let is_marked = || text_at(path, 2).is_some_and(|start| start == b"#!");
    is_program || is_script() || is_marked()
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
    fn what_a_script_runs_is_found_however_it_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let (home, work) = (root.join("home"), root.join("home/w"));
        fs::create_dir_all(work.join("scripts/in")).unwrap();
        fs::create_dir_all(work.join("scripts/of mine")).unwrap();
        fs::create_dir_all(work.join(".git/hooks")).unwrap();
        let names =
            ["a.py", "b.sh", "plain", "data.json", "my tool.sh", "in/c", "in/d.rb", "of mine/e.sh"];
        names.iter().for_each(|name| fs::write(work.join("scripts").join(name), "x").unwrap());
        fs::write(work.join("scripts/marked"), "#!/bin/sh\n").unwrap();
        fs::write(work.join("package.json"), "x").unwrap();
        let folders = vec![work.clone(), work.join(".git/hooks")];
        let places = Places { workspace: &work, homes: &[home], folders, made: None };
        fs::create_dir_all(work.join("scripts/deep/a/b/c/d")).unwrap();
        fs::write(work.join("scripts/deep/a/b/c/d/f.sh"), "x").unwrap();
        let absolute = format!("exec {}/scripts/b.sh", work.display());
        let commented = format!("{}scripts/marked", "# one two three four\n".repeat(9_000));
        // The words do not even say where these files are.
        let long = format!("{}run f.sh; marked", "one two three four\n".repeat(9_000));
        for (text, expected) in [
            ("python3 scripts/a.py package.json", vec!["a.py"]),
            ("python3.11 scripts/plain", vec!["plain"]),
            ("\"$ROOT/scripts/b.sh\"", vec!["b.sh"]),
            ("${ROOT}/scripts/b.sh", vec!["b.sh"]),
            ("${ROOT:-.}/scripts/b.sh", vec!["b.sh"]),
            ("$(git rev-parse --show-toplevel)/scripts/b.sh", vec!["b.sh"]),
            ("\"$(dirname \"$0\")/../../scripts/b.sh\"", vec!["b.sh"]),
            ("`dirname $0`/../../scripts/b.sh", vec!["b.sh"]),
            (". scripts/plain", vec!["plain"]),
            ("source ./scripts/plain", vec!["plain"]),
            ("sh -e scripts/plain scripts/data.json", vec!["plain"]),
            ("./scripts/marked", vec!["marked"]),
            ("cd scripts && ./marked", vec!["marked"]),
            ("cd \"$ROOT/scripts\"; cd in\nruby c", vec!["in/c"]),
            ("make -C scripts; pushd scripts/in; d.rb", vec!["in/d.rb"]),
            ("D=$ROOT/scripts; cd $D; sh plain", vec!["plain"]),
            ("\"scripts/my tool.sh\"", vec!["my tool.sh"]),
            ("\"$ROOT/scripts/my tool.sh\"", vec!["my tool.sh"]),
            ("\"$ROOT\"/scripts/my\\ tool.sh", vec!["my tool.sh"]),
            ("cd \"$ROOT/scripts/of mine\" && ./e.sh", vec!["of mine/e.sh"]),
            ("(cd \"$(git rev-parse --show-cdup)scripts\" && ./b.sh)", vec!["b.sh"]),
            (
                "cd \"$(git rev-parse --show-toplevel 2>/dev/null || pwd)/scripts\" && ./marked",
                vec!["marked"],
            ),
            (
                "cd \"$(cd \"$(dirname \"${BASH_SOURCE[0]}\")\" >/dev/null 2>&1 && pwd)/../../scripts\" && ./marked",
                vec!["marked"],
            ),
            (
                "D=\"$(git rev-parse --path-format=absolute --show-toplevel 2>/dev/null)/scripts\"; cd \"$D\"; ./marked",
                vec!["marked"],
            ),
            ("D=`git rev-parse --show-toplevel`/scripts\ncd $D\n./marked", vec!["marked"]),
            ("cd scripts; cd deep; cd a; cd b; cd c; cd d; ./f.sh", vec!["deep/a/b/c/d/f.sh"]),
            (&commented, vec!["marked"]),
            (&long, vec!["deep/a/b/c/d/f.sh", "marked"]),
            ("~+/scripts/b.sh", vec!["b.sh"]),
            ("$HOME/w/scripts/b.sh", vec!["b.sh"]),
            ("~/w/scripts/b.sh", vec!["b.sh"]),
            (&absolute, vec!["b.sh"]),
            ("F=scripts/plain; . \"$F\"", vec!["plain"]),
            ("sh \"$(pwd)/scripts/plain\" scripts/in/c", vec!["plain"]),
            ("sh \"${PWD}/scripts/plain\" scripts/in/c", vec!["plain"]),
            ("sh `pwd`/scripts/plain scripts/in/c", vec!["plain"]),
            (". \"${X:-scripts/plain}\"", vec!["plain"]),
            (". ${X-\"scripts/plain\"}", vec!["plain"]),
            (". ${X:=scripts/plain}", vec!["plain"]),
            ("\"${CHECK:-scripts/b.sh}\"", vec!["b.sh"]),
            ("S=sh; $S scripts/plain", vec!["plain"]),
            ("f() { . \"$1\"; }; f scripts/plain", vec!["plain"]),
            ("for f in scripts/plain scripts/data.json; do sh $f; done", vec!["plain"]),
            ("cat scripts/plain | sh", vec!["plain"]),
            ("eval \"$(cat scripts/plain)\"", vec!["plain"]),
            ("bash <(cat scripts/plain)", vec!["plain"]),
            ("tclsh scripts/plain", vec!["plain"]),
            ("F=scripts/data.json; node \"$X\" $F package.json", vec![]),
            ("sh \"$(pwd)/x\"; cat ${ROOT:-.}/scripts/plain", vec![]),
            ("for f in $(git diff --name-only); do grep x \"$f\" scripts/plain; done", vec![]),
            ("cat package.json scripts/data.json scripts/plain; ls scripts", vec![]),
            ("sh; cat scripts/plain", vec![]),
        ] {
            let found = places.run_by_script(text);
            let found: Vec<_> = found
                .iter()
                .map(|it| it.strip_prefix(work.join("scripts")).unwrap().to_str().unwrap())
                .collect();
            assert_eq!(found, expected, "{text}");
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
