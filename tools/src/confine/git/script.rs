//! The files that a shell script runs, as far as its words show.
//!
//! The position of a word decides. The first word of a command is run, and so is the first file that a shell or
//! another interpreter gets. Files that a program only reads are data. If the script runs what a variable holds,
//! every file counts that a variable may hold.

use super::path_trace::PathTrace;
use super::programs::{
    BEFORE_COMMANDS, COMPLETED, COMPLETERS, DATA, DATA_NAMES, INTERPRETERS, PRINTERS, READERS,
    STARTERS, STARTS, WITH_FILE, WITH_TEXT,
};
use super::spelled::{is_pattern, spelled_out};
use super::tree::text_at;
use super::words::{
    BETWEEN, Places, WORDS, Word, spaced, with_comments_last, without_quotes, words,
};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::ffi::OsStr;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The maximum number of words to check in a binary program, whose words are not shell.
const WORDS_OF_PROGRAM: usize = 5_000;

/// The maximum number of folders to search for programs and scripts.
const FOLDERS: usize = 200_000;

/// The maximum size of a file that counts as a script because a variable holds its name.
const LARGEST: u64 = 1 << 20;

/// What a command does with the files that it names.
#[derive(Clone, Copy, PartialEq)]
enum Use<'t> {
    /// The next word is the program.
    Program,
    /// The same. What other commands print here is run, too, as after `eval` and `sh -c`.
    Text,
    /// This interpreter runs the first file.
    Runs(&'t str),
    /// It obeys the file after `-f`.
    ObeysFile,
    /// It starts a command after some words.
    Starts,
    Prints,
    Reads,
    Unknown,
}

impl<'t> Use<'t> {
    /// What the program named `word` does with its files. `None` if that is not known.
    fn of_program(word: &'t str) -> Option<Use<'t>> {
        let name = match word {
            "." => ".",
            _ => {
                let name = word.rsplit('/').next().unwrap_or(word);
                name.trim_end_matches(|it: char| "0123456789.".contains(it))
            }
        };
        let is_in = |names: &[&str]| names.contains(&name);
        match () {
            () if name == "eval" => Some(Use::Text),
            () if is_in(INTERPRETERS) => Some(Use::Runs(name)),
            () if is_in(WITH_FILE) => Some(Use::ObeysFile),
            () if is_in(STARTERS) => Some(Use::Starts),
            () if is_in(PRINTERS) => Some(Use::Prints),
            () if is_in(READERS) => Some(Use::Reads),
            () if is_in(BEFORE_COMMANDS) => Some(Use::Program),
            () => None,
        }
    }

    /// What follows after the option `word`, if that changes.
    fn after_option(self, word: &str) -> Option<Use<'t>> {
        let Use::Runs(name) = self else {
            let is_start = self == Use::Starts && STARTS.contains(&word);
            // Letters may come before, as in `make -sf x`.
            let is_short = word.starts_with('-') && !word.starts_with("--") && word.ends_with('f');
            let is_file = is_short || ["--file", "--makefile", "--justfile"].contains(&word);
            return match self {
                Use::ObeysFile if is_file => Some(Use::Runs("")),
                _ => is_start.then_some(Use::Program),
            };
        };
        let has_text = WITH_TEXT.contains(&name);
        let letters =
            word.strip_prefix('-').filter(|it| it.bytes().all(|it| it.is_ascii_alphabetic()));
        let last = letters.and_then(|it| it.chars().last());
        match (name, last) {
            _ if ["--check", "--lint", "--syntax-check", "--test"].contains(&word) => {
                Some(Use::Reads)
            }
            _ if has_text && ["--eval", "--print"].contains(&word) => Some(Use::Text),
            ("php", Some('l')) | ("sh" | "bash" | "dash" | "ksh" | "zsh", Some('n')) => {
                Some(Use::Reads)
            }
            ("python", Some('m')) => Some(Use::Prints),
            ("bun" | "deno", _) if ["check", "fmt", "lint", "test"].contains(&word) => {
                Some(Use::Reads)
            }
            ("perl" | "ruby" | "node" | "nodejs", Some('c')) => Some(Use::Reads),
            (_, Some('c')) => Some(Use::Text),
            (_, Some('e' | 'E' | 'p' | 'r'))
                if has_text && word != "-r" || word == "-r" && name == "php" =>
            {
                Some(Use::Text)
            }
            _ => None,
        }
    }

    /// True if this runs what a command prints that is in the place of an argument.
    fn runs_output(&self) -> bool {
        matches!(self, Use::Text | Use::Runs(_))
    }
}

/// The commands around a word, from the outermost to its own.
struct Around<'t> {
    uses: Vec<Use<'t>>,
    /// What each of them did with files before the word whose parts are being read.
    before: Vec<Use<'t>>,
    /// Whether the rest of each of them is a text that is run.
    in_text: Vec<bool>,
    last: usize,
    is_after_option: bool,
}

impl<'t> Around<'t> {
    fn new() -> Around<'t> {
        let (uses, before) = (vec![Use::Program], vec![Use::Program]);
        Around { uses, before, in_text: vec![false], last: 0, is_after_option: false }
    }

    /// Goes on to this word. Returns what its command does with it.
    fn enter(&mut self, word: &Word<'t>) -> Use<'t> {
        let depth = word.depth;
        // `grep 'a|b' x` has one command. `sh -c 'a; b'` has three.
        let is_over = |at: usize| word.ended.is_some_and(|it| at >= it);
        let is_begun = word.is_begun && !(word.is_quoted && self.takes_quotes(depth));
        for at in 0..self.uses.len() {
            let is_over_in_text = word.ended_in_quotes.is_some_and(|it| at >= it);
            if is_over(at) || at == depth && is_begun || is_over_in_text && !self.takes_quotes(at) {
                self.uses[at] = Use::Program;
                self.in_text[at] &= !is_over(at);
            }
        }
        // A command that is in the place of a word ends the parts of that word which come before it.
        let is_part = word.is_joined && !is_begun && self.last == depth;
        self.last = depth;
        self.uses.resize(depth + 1, Use::Program);
        self.before.resize(depth + 1, Use::Program);
        self.in_text.resize(depth + 1, false);
        match is_part {
            true => self.uses[depth] = self.before[depth],
            false => self.before[depth] = self.uses[depth],
        }
        if word.is_tested {
            self.uses[depth] = Use::Reads;
        }
        self.uses[depth]
    }

    /// True if quotes are around the arguments of the command at this depth, not around a text that is run.
    fn takes_quotes(&self, depth: usize) -> bool {
        let may_run = |it: &Use| matches!(it, Use::Program | Use::Text | Use::Unknown);
        self.uses.get(depth).is_some_and(|it| !may_run(it)) && !self.in_text[depth]
    }

    fn set(&mut self, to: Use<'t>) {
        let depth = self.last;
        self.uses[depth] = to;
        self.in_text[depth] |= to == Use::Text;
    }

    /// True if the output of the word's own command is run by a command around it.
    fn is_output_run(&self) -> bool {
        self.uses[..self.last].iter().any(Use::runs_output)
    }
}

impl Places<'_> {
    /// Files that the settings of a program which runs commands name: all but known data.
    pub(super) fn run_by_settings(&self, text: &str) -> Vec<PathBuf> {
        let named = self.run_by_script(text).into_iter().chain(self.named_by_line(text));
        let named: BTreeSet<PathBuf> = named.filter(|path| !is_known_data(path)).collect();
        self.with_interpreters(text, named.into_iter().collect())
    }

    /// Files that a script runs: programs, scripts, and files that it passes to an interpreter.
    pub(super) fn run_by_script(&self, text: &str) -> Vec<PathBuf> {
        let first = text.lines().next().unwrap_or_default();
        let mut named = self.run_by_text(text);
        // The kernel runs what the first line names.
        named.extend(first.strip_prefix("#!").into_iter().flat_map(|it| self.run_by_text(it)));
        self.with_interpreters(text, named)
    }

    pub(super) fn run_by_text(&self, text: &str) -> Vec<PathBuf> {
        // The grammar of another language is not known here.
        let first = text.lines().next().unwrap_or_default();
        if first.starts_with("#!") && !first.contains("sh") && !text.contains('\0') {
            let text = text.split_once('\n').map_or("", |(_, rest)| rest);
            let mut named = self.run_by_settings(text);
            if first.contains("make") {
                named.extend(self.included(text));
            }
            return named;
        }
        let text = &with_comments_last(text);
        let is_text = !text.contains('\0');
        let most = if is_text { WORDS } else { WORDS_OF_PROGRAM };
        let bare = without_quotes(text);
        let mut all = words(text, most);
        let is_long = is_text && all.len() >= most;
        all.extend(words(&bare, most));
        let spelled = if is_text { spelled_out(text) } else { None };
        all.extend(spelled.iter().flat_map(|it| words(it, most)));
        let spaced = spaced(text);
        let folders = self.entered(&all, &spaced);
        let mut found = Run::default();
        let mut around = Around::new();
        let mut known: HashMap<&str, Vec<PathBuf>> = HashMap::new();
        for word in &all {
            let used = around.enter(word);
            if word.is_begun && !word.is_piped {
                found.piped.clear();
            }
            if word.is_output {
                continue;
            }
            // `make -fx`.
            let obeyed = word.text.strip_prefix("-f").filter(|_| used == Use::ObeysFile);
            let files = known.entry(obeyed.unwrap_or(word.text)).or_insert_with_key(|text| {
                let places = self.places(text, &folders).into_iter();
                places.filter(|path| self.is_file(path)).collect()
            });
            if obeyed.is_some() {
                found.run.extend(files.iter().cloned());
            }
            if let Use::Runs(name) = used
                && files.is_empty()
                && COMPLETERS.contains(&name)
            {
                let text = word.text.trim_end_matches('/');
                let names = COMPLETED.iter().map(|end| format!("{text}{end}"));
                let places = names.flat_map(|name| self.places(&name, &folders));
                found.run.extend(places.filter(|path| self.is_file(path)));
            }
            let mut is_matched = false;
            if matches!(used, Use::Runs(_)) && is_pattern(word.text) && !word.is_assigned {
                let files = self.matching(word.text, &folders).into_iter();
                let files: Vec<PathBuf> = files.filter(|path| !is_known_data(path)).collect();
                is_matched = !files.is_empty();
                found.run.extend(files);
            }
            let mut next = self.follow(word, used, files, around.is_output_run(), &mut found);
            // The value of an option, as in `uv run --with x y.py`.
            if used == Use::Program && next == Use::Unknown && around.is_after_option {
                next = used;
            }
            // What follows are the arguments of what runs.
            if is_matched && used == next {
                next = Use::Prints;
            }
            around.is_after_option = word.text.starts_with('-') && !word.is_begun;
            around.set(next);
        }
        let Run { mut run, held, is_loose, .. } = found;
        run.extend(self.set_by(text, &folders));
        if is_text && is_loose {
            run.extend(held.into_iter().filter(|path| !is_known_data(path)));
        }
        let places = spaced.iter().flat_map(|word| self.places(word, &folders));
        run.extend(places.filter(|path| self.is_file(path) && !is_known_data(path)));
        if is_long {
            run.extend(self.with_names_in(text));
        }
        run.into_iter().collect()
    }

    /// Adds what `word`, which may mean these files, says about what is run. Returns what its command does with
    /// the words after it.
    fn follow<'t>(
        &self,
        word: &Word<'t>,
        used: Use<'t>,
        files: &[PathBuf],
        is_output_run: bool,
        found: &mut Run,
    ) -> Use<'t> {
        let expects_program = matches!(used, Use::Program | Use::Text);
        if word.is_variable
            && !word.is_assigned
            && (expects_program || matches!(used, Use::Runs(_)))
        {
            found.is_loose = true;
            // It is not known whether that is what it runs, or an option.
            return Use::Unknown;
        }
        if is_output_run {
            found.run.extend(files.iter().cloned());
        }
        // `alias.x=!y` is a command.
        if word.is_assigned && !word.is_begun {
            match used {
                Use::Runs(_) => found.run.extend(files.iter().cloned()),
                _ => found.hold(files),
            }
            return used;
        }
        let program = Use::of_program(word.text);
        if (expects_program || used == Use::Unknown)
            && let Some(next) = program
        {
            let is_interpreter = next.runs_output();
            if is_interpreter || expects_program {
                if is_interpreter && word.is_piped {
                    let piped = std::mem::take(&mut found.piped);
                    found.run.extend(piped);
                }
                return next;
            }
        }
        if let Some(next) = used.after_option(word.text) {
            return next;
        }
        let is_made_to_run = |path: &&PathBuf| is_made_to_run(path) || self.is_lost(path);
        match used {
            // A part of a test, as in `[[ -f x && -f y ]]`.
            Use::Program if word.is_begun && word.text.starts_with('-') => Use::Reads,
            Use::Program | Use::Text if is_option(word.text) => used,
            Use::Program | Use::Text => {
                let is_path = word.text.contains('/');
                let is_run = |it: &&PathBuf| is_made_to_run(it) || is_path && !is_known_data(it);
                let (run, held): (Vec<_>, Vec<_>) = files.iter().partition(is_run);
                found.run.extend(run.iter().map(|it| (*it).clone()));
                found.held.extend(held.into_iter().cloned());
                if run.is_empty() { Use::Unknown } else { Use::Prints }
            }
            Use::Runs(_) => {
                found.run.extend(files.iter().cloned());
                // The others are what that is about.
                let is_data = files.iter().all(|path| is_known_data(path));
                if is_data { used } else { Use::Prints }
            }
            Use::ObeysFile | Use::Prints => {
                found.hold(files);
                used
            }
            Use::Starts | Use::Reads => {
                found.piped.extend(files.iter().cloned());
                used
            }
            Use::Unknown => {
                let (run, held): (Vec<_>, Vec<_>) = files.iter().partition(is_made_to_run);
                found.run.extend(run.into_iter().cloned());
                found.held.extend(held.into_iter().cloned());
                used
            }
        }
    }

    /// True if nobody knows what will be there: at the end of a link that leads nowhere yet.
    fn is_lost(&self, path: &Path) -> bool {
        PathTrace::to(path, self.workspace).is_lost()
    }

    /// All files in the workspace whose names occur somewhere in the text, except known data.
    fn with_names_in(&self, text: &str) -> Vec<PathBuf> {
        let ends = |letter: char| BETWEEN.contains(&letter) || "/\\:".contains(letter);
        let names: HashSet<&OsStr> = text.split(ends).map(OsStr::new).collect();
        let is_named = |path: &&Path| path.file_name().is_some_and(|name| names.contains(name));
        let made = self.made.filter(is_named).filter(|path| !is_known_data(path));
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
                } else if names.contains(&*entry.file_name()) && !is_known_data(&path) {
                    found.push(path);
                }
            }
        }
        found
    }
}

/// What is known so far about the files that a script names.
#[derive(Default)]
struct Run {
    run: BTreeSet<PathBuf>,
    /// Files that a variable or a function may hold.
    held: BTreeSet<PathBuf>,
    /// Files whose content the commands of this pipe may print.
    piped: BTreeSet<PathBuf>,
    /// Something is run whose name is in a variable.
    is_loose: bool,
}

impl Run {
    /// Adds files that a variable may hold, and whose content may go through a pipe.
    fn hold(&mut self, files: &[PathBuf]) {
        self.held.extend(files.iter().cloned());
        self.piped.extend(files.iter().cloned());
    }
}

/// True for an option, a number, and a length of time: none of them is a program.
fn is_option(word: &str) -> bool {
    word.starts_with('-')
        || word.starts_with(|letter: char| letter.is_ascii_digit()) && !word.contains('/')
}

/// True for a file that is not run, whatever a script does with its name: by its name or by its size.
fn is_known_data(path: &Path) -> bool {
    let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
    let end = path.extension().and_then(OsStr::to_str).unwrap_or_default().to_ascii_lowercase();
    let is_large = || path.metadata().is_ok_and(|found| found.len() > LARGEST);
    DATA_NAMES.contains(&name)
        || name.ends_with("ignore")
        || DATA.contains(&end.as_str())
        || is_large()
}

/// True for a program, and for a file that says what runs it.
fn is_made_to_run(path: &Path) -> bool {
    let is_program = path.metadata().is_ok_and(|found| found.mode() & 0o111 != 0);
    is_program || text_at(path, 2).is_some_and(|start| start == b"#!")
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn what_a_script_runs_is_found_however_it_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let (home, work) = (root.join("home"), root.join("home/w"));
        fs::create_dir_all(work.join("scripts/in")).unwrap();
        fs::create_dir_all(work.join("scripts/of mine")).unwrap();
        fs::create_dir_all(work.join("scripts/mod")).unwrap();
        fs::create_dir_all(work.join(".git/hooks")).unwrap();
        let names = [
            "a.py",
            "b.sh",
            "plain",
            "data.json",
            "my tool.sh",
            "in/c",
            "in/d.rb",
            "of mine/e.sh",
            ".env",
            "run.js",
            "mod/index.js",
        ];
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
        let mut wrong = Vec::new();
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
            ("make -C scripts; pushd scripts/in; ./d.rb", vec!["in/d.rb"]),
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
            // Only read or checked.
            ("grep -q x scripts/a.py", vec![]),
            ("grep -E 'a|b' scripts/marked; echo \"x; $(date)\" \"y|z\" scripts/marked", vec![]),
            (
                "sed 's/a/b/; s/c/d/' scripts/marked | wc -l # don't\ngit add 'a;b' scripts/marked",
                vec![],
            ),
            ("sh -c 'cat scripts/marked; cd scripts; ./plain'", vec!["plain"]),
            ("if grep -n 'TODO|FIXME' scripts/a.py; then exit 1; fi", vec![]),
            ("V=$(sed -n 's/^x=//p' scripts/a.py)", vec![]),
            ("python3 -m flake8 scripts/a.py; python3.12 -m json.tool scripts/data.json", vec![]),
            ("black --check scripts/a.py && npx eslint scripts/a.py scripts/marked", vec![]),
            ("python3 scripts/b.sh scripts/a.py scripts/marked", vec!["b.sh"]),
            ("git add scripts/a.py scripts/marked; cp scripts/b.sh scripts/in/c", vec![]),
            ("[ -f scripts/marked ] || [ -x \"$R/scripts/b.sh\" ]", vec![]),
            ("[[ -f scripts/a.py && -f scripts/marked ]]; test -f scripts/b.sh", vec![]),
            ("echo >&2 'see scripts/marked'; awk '{print}' scripts/a.py", vec![]),
            (
                "sh -n scripts/b.sh; node --check scripts/a.py; perl -ne 'print' scripts/a.py",
                vec![],
            ),
            ("git diff | python3 -c 'x' > scripts/plain; sh >scripts/plain", vec![]),
            ("for f in scripts/a.py; do wc -l $f; done; timeout 5 ruff check scripts/a.py", vec![]),
            ("eval \"$(ssh-agent)\"; grep x scripts/a.py; git add scripts/b.sh", vec![]),
            // Run all the same.
            (
                "#!/usr/bin/env python3\nimport subprocess\nsubprocess.run([\"scripts/plain\"])",
                vec!["plain"],
            ),
            ("#!scripts/plain\n", vec!["plain"]),
            ("#! scripts/plain -a\nx", vec!["plain"]),
            ("#!/usr/bin/env scripts/b.sh\nx", vec!["b.sh"]),
            ("#!/bin/sh scripts/plain\nx", vec!["plain"]),
            ("python3 - <<P\nsubprocess.run([\"./scripts/plain\"])\nP", vec!["plain"]),
            ("node scripts/run; node scripts/mod", vec!["mod/index.js", "run.js"]),
            ("ts-node -P scripts/data.json scripts/a.py", vec!["a.py", "data.json"]),
            ("uv run --with yaml scripts/a.py", vec!["a.py"]),
            ("grep 'x(' a; case $x in a) sh scripts/plain;; esac", vec!["plain"]),
            ("yarn --cwd scripts node plain", vec!["plain"]),
            ("make -f scripts/plain; make -fscripts/in/c", vec!["in/c", "plain"]),
            ("make -sf scripts/plain", vec!["plain"]),
            ("sed -f scripts/plain x", vec!["plain"]),
            ("timeout 5 sh scripts/plain; sudo -n scripts/b.sh", vec!["b.sh", "plain"]),
            ("git bisect run scripts/b.sh; find . -exec scripts/plain {} +", vec!["b.sh", "plain"]),
            ("case $1 in a) scripts/plain;; esac", vec!["plain"]),
            ("A=1 B=2 scripts/plain", vec!["plain"]),
            ("grep x scripts/a.py | sh", vec!["a.py"]),
            ("eval \"$(grep x scripts/a.py)\"", vec!["a.py"]),
            ("bash -c \"$(cat scripts/plain)\"", vec!["plain"]),
            ("bash -c 'cd scripts && ./plain'", vec!["plain"]),
            ("uv run scripts/plain; poetry run python scripts/a.py", vec!["a.py", "plain"]),
            ("exec \"$PY\" scripts/plain", vec!["plain"]),
            ("if env \"$PY\" scripts/plain; then x; fi", vec!["plain"]),
            ("A=1 \"$PY\" scripts/plain", vec!["plain"]),
            ("for f in scripts/plain; do [ -x $f ] && ./$f; done", vec!["plain"]),
            (". \"${D:-scripts}/plain\"", vec!["plain"]),
            ("\"${D:-$R/scripts}/b.sh\"", vec!["b.sh"]),
            // Other ways to write a word.
            ("sh scri\\\npts/plain", vec!["plain"]),
            ("sh $'scripts\\x2fplain'", vec!["plain"]),
            ("sh scripts/{plain,}", vec!["plain"]),
            ("sh scripts/{none,plain};ls", vec!["plain"]),
            ("sh scripts/p?ain scripts/b.sh", vec!["plain"]),
            ("sh \"$R\"/scripts/[b].s[[:alpha:]]", vec!["b.sh"]),
            ("cd scripts && sh pl*", vec!["plain"]),
            ("#!/usr/bin/env -S sh\\_scripts/plain", vec!["plain"]),
            ("#!/usr/bin/env -iSsh scripts/plain", vec!["plain"]),
            ("env -S 'sh\\tscripts/plain'", vec!["plain"]),
            ("git -c alias.z=!scripts/plain z", vec!["plain"]),
            ("git -c 'alias.z=!sh scripts/plain' z", vec!["plain"]),
            ("#!/usr/bin/make -f\n-include scripts/in/*\n", vec!["in/c", "in/d.rb"]),
            // Patterns of what is only read.
            ("black scripts/*.py; sh -n scripts/*.sh; git add scripts/*", vec![]),
            ("git diff --name-only 'scripts/*.py' | xargs ruff check", vec![]),
            ("for f in scripts/*.py; do grep x $f; done; [ -f scripts/[a-z]* ]", vec![]),
            ("case $f in scripts/*.sh) shellcheck $f;; scripts/*) true;; esac", vec![]),
            ("python3 scripts/b.sh scripts/*.py", vec!["b.sh"]),
            ("E=\"$R/scripts/.env\"; [ -f \"$E\" ] && . \"$E\"", vec![".env"]),
            ("load() { . \"$1\"; }; load scripts/.env", vec![".env"]),
        ] {
            let found = places.run_by_script(text);
            let found: Vec<_> = found
                .iter()
                .map(|it| it.strip_prefix(work.join("scripts")).unwrap().to_str().unwrap())
                .collect();
            if found != expected {
                wrong.push(format!("{text}: {found:?}, not {expected:?}"));
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }
}
