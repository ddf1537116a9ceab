//! Programs that run another program in their arguments, at a known position.

use super::{Runs, base, may_be_input};
use crate::policy::shell::Word;

/// Names, some with a word that must follow; options, with `=` if a value follows; how many words
/// precede the command.
const WRAPPERS: [(&str, &str, usize); 60] = [
    ("env", "- -i -0 -v -u= -C= --debug --null --ignore-environment --unset= --chdir=", 0),
    ("nice", "-n= --adjustment=", 0),
    ("nohup", "", 0),
    ("timeout", "-s= -k= -v --foreground --preserve-status --signal= --kill-after=", 1),
    ("time", "-p -v -a -f= -o= --verbose --format= --output=", 0),
    ("stdbuf", "-i= -o= -e= --input= --output= --error=", 0),
    ("setsid", "-w -f -c --wait --fork", 0),
    ("ionice", "-t -c= -n=", 0),
    ("sudo", "-n -E -H -k -u= -g=", 0),
    ("command", "-p", 0),
    ("exec", "-c -l -a=", 0),
    ("builtin", "", 0),
    ("xargs", XARGS, 0),
    ("npx", "-y -q --yes --no --no-install --quiet -p= --package=", 0),
    ("bunx", "--bun", 0),
    ("uvx", "-q --from= --with= --python=", 0),
    ("uv run", UV, 0),
    ("poetry run", "", 0),
    ("pipenv run", "", 0),
    ("pdm run", "", 0),
    ("bundle exec", "", 0),
    ("npm exec", "-y --yes --no -p= --package=", 0),
    ("pnpm exec", "-r", 0),
    ("yarn exec", "", 0),
    ("conda run", "-n= -p= --name= --prefix= --no-capture-output --live-stream", 0),
    ("mamba run", "-n= -p=", 0),
    ("pyenv exec", "", 0),
    ("rbenv exec", "", 0),
    ("asdf exec", "", 0),
    ("direnv exec", "", 1),
    ("rustup run", "--install", 1),
    ("composer exec", "-q -v", 0),
    ("lerna exec", "--parallel --stream --no-bail --scope= --ignore=", 0),
    ("op run", "--no-masking --env-file= --account=", 0),
    ("doppler run", "-p= -c= --project= --config= --preserve-env", 0),
    ("infisical run", "--env= --path=", 0),
    ("aws-vault exec", "-n --no-session -d=", 1),
    ("chamber exec", "", 1),
    // Names of tools precede the command.
    ("mise exec", "", 0),
    ("mise x", "", 0),
    ("volta run", "--node= --npm= --yarn=", 0),
    ("nodenv exec", "", 0),
    ("goenv exec", "", 0),
    ("plenv exec", "", 0),
    ("jenv exec", "", 0),
    ("hatch run", "", 0),
    ("rye run", "", 0),
    ("pixi run", "", 0),
    ("dotenvx run", "-f= -q", 0),
    ("chronic", "-v -e", 0),
    ("eatmydata", "", 0),
    ("sccache", "", 0),
    ("ccache", "", 0),
    ("gosu", "", 1),
    ("su-exec", "", 1),
    ("tini", "-s -g -v", 0),
    ("dumb-init", "-v -c", 0),
    ("caffeinate", "-d -i -m -s -u", 0),
    ("cmake -E", "", 0),
    ("docker exec", "-i -t -d -u= -w= -e= --user= --workdir= --env= --interactive --tty", 1),
];
const XARGS: &str = "-0 -r -t -x -n= -P= -L= -d= -s= -I= -a= --null --no-run-if-empty --verbose \
     --max-args= --max-procs= --max-lines= --delimiter= --arg-file=";
const UV: &str = "-q --dev --no-dev --frozen --locked --all-extras --isolated --no-sync \
     --no-project --with= --python= -p= --extra= --group= --directory= --project=";

/// True when two words name such a program, whether its options are understood or not.
pub(super) fn is_one(words: &[Word]) -> bool {
    let [Word::Exact(name), Word::Exact(command), ..] = words else { return false };
    // Its options precede its command.
    if base(name) == "hatch" && command.starts_with('-') {
        return words.iter().any(|word| super::is_one_of(Some(word), &["run"]));
    }
    let two = format!("{} {command}", base(name));
    WRAPPERS.iter().any(|(known, ..)| *known == two)
}

/// Returns what `words` run, if they are such a program and all words before the command are known.
pub(super) fn runs(words: &[Word]) -> Option<Runs> {
    let name = base(words.first()?.exact()?);
    if name == "git" && super::is_one_of(words.get(1), &["bisect"]) {
        let is_run = super::is_one_of(words.get(2), &["run"]);
        return is_run.then(|| Runs::Commands(vec![words[3..].to_vec()], Vec::new()));
    }
    let second = words.get(1).and_then(Word::exact).map(|second| format!("{name} {second}"));
    let (known, options, positions) =
        WRAPPERS.iter().find(|(known, ..)| *known == name || Some(*known) == second.as_deref())?;
    match *known {
        "mise exec" | "mise x" => return mise(&words[2..]),
        "cmake -E" => return cmake(&words[2..]),
        _ => {}
    }
    let assigns = ["env", "sudo"].contains(known);
    let mut at = known.split(' ').count();
    let (mut settings, mut replaced, mut ended) = (Vec::new(), None, false);
    while let Some(word) = words.get(at) {
        let text = match word {
            Word::Exact(text) => text.as_str(),
            // A word that begins with a name and `=` is not a program.
            known if assigns && known.start().contains('=') => known.start(),
            _ => return None,
        };
        if text == "--" && !ended {
            at += 1;
            // Settings may follow.
            ended = true;
            if assigns { continue } else { break }
        }
        if ended || !text.starts_with('-') {
            if !assigns || !text.contains('=') {
                break;
            }
            settings.push(word.clone());
            at += 1;
            continue;
        }
        let takes = |option: &str| options.split(' ').any(|known| known == option);
        let (option, value) = match text.split_once('=').filter(|_| text.starts_with("--")) {
            Some((option, value)) => (option, Some(value)),
            None if text.starts_with("--") || text.len() < 3 => (text, None),
            None => (text.get(..2)?, text.get(2..)),
        };
        let is_valued = takes(&format!("{option}="));
        let value = match value {
            Some(value) if is_valued => Some(value),
            // Several letters in one group.
            Some(_) if text[1..].chars().all(|letter| takes(&format!("-{letter}"))) => None,
            // `env -S` splits a text into a command.
            Some(_) if *known == "env" => return Some(Runs::Anything),
            Some(_) => return None,
            None if is_valued => {
                at += 1;
                Some(words.get(at)?.exact()?)
            }
            None if takes(option) => None,
            None if *known == "env" => return Some(Runs::Anything),
            None => return None,
        };
        if *known == "xargs" && option == "-I" {
            replaced = value;
        }
        at += 1;
    }
    let mut command = words.get(at + positions..)?.to_vec();
    if *positions > 0 && super::is_one_of(command.first(), &["--"]) {
        command.remove(0);
    }
    // `hatch run environment:command`
    if *known == "hatch run" && command.first().is_some_and(|word| word.start().contains(':')) {
        return Some(Runs::Anything);
    }
    if *known == "xargs" && !command.is_empty() {
        match replaced {
            Some(sign) => command.iter_mut().for_each(|word| *word = without(word, sign)),
            None => command.push(Word::Unknown),
        }
    }
    Some(Runs::Commands(vec![command], settings))
}

/// Returns what `mise exec` runs: the command after `--`.
fn mise(arguments: &[Word]) -> Option<Runs> {
    let end = arguments.iter().position(|word| super::is_one_of(Some(word), &["--"]))?;
    let (tools, command) = arguments.split_at(end);
    // An option may have a command as its value.
    let is_tool = |word: &Word| word.exact().is_some_and(|text| !text.starts_with('-'));
    tools.iter().all(is_tool).then(|| Runs::Commands(vec![command[1..].to_vec()], Vec::new()))
}

/// Returns what `cmake -E` runs, if it runs something.
fn cmake(arguments: &[Word]) -> Option<Runs> {
    const FILES: &str = "capabilities cat compare_files copy copy_directory copy_directory_if_different \
         copy_if_different copy_if_newer create_hardlink create_symlink echo echo_append environment false \
         make_directory md5sum remove remove_directory rename rm sha1sum sha224sum sha256sum sha384sum sha512sum \
         sleep tar touch touch_nocreate true";
    let (command, rest) = arguments.split_first()?;
    let skipped = match command.exact()? {
        "time" => 0,
        "chdir" => 1,
        "env" => {
            let is_setting = |word: &&Word| word.start().contains('=');
            let settings = rest.iter().take_while(is_setting).count();
            let (settings, command) = rest.split_at(settings);
            let known = |word: &Word| word.exact().is_some_and(|text| !text.starts_with('-'));
            if !settings.iter().all(known) || command.first().is_some_and(|word| !known(word)) {
                return None;
            }
            return Some(Runs::Commands(vec![command.to_vec()], settings.to_vec()));
        }
        known if FILES.split_whitespace().any(|it| it == known) => return Some(Runs::Itself),
        _ => return None,
    };
    Some(Runs::Commands(vec![rest.get(skipped..)?.to_vec()], Vec::new()))
}

/// Returns the word with an unknown text in place of `sign`.
fn without(word: &Word, sign: &str) -> Word {
    match word {
        Word::Exact(text) if !sign.is_empty() && text.contains(sign) => {
            let start = text.split(sign).next().unwrap_or_default().to_owned();
            Word::Partly { start, end: text.rsplit(sign).next().unwrap_or_default().to_owned() }
        }
        other => other.clone(),
    }
}

/// Returns what find runs: the commands between `-exec` or similar and `;` or `+`.
pub(super) fn find(words: &[Word]) -> Runs {
    let mut commands = Vec::new();
    let mut rest = &words[1..];
    let mut unsure = 0;
    while let Some((word, others)) = rest.split_first() {
        rest = others;
        if !super::is_one_of(Some(word), &["-exec", "-execdir", "-ok", "-okdir"]) {
            unsure += usize::from(word.exact().is_none() && word.may_be_option());
            continue;
        }
        let is_end = |word: &Word| super::is_one_of(Some(word), &[";", "+"]);
        let end = others.iter().position(is_end).unwrap_or(others.len());
        commands.push(others[..end].iter().map(|word| without(word, "{}")).collect::<Vec<_>>());
        rest = &others[end..];
    }
    // An unknown word may be `-exec`; but then the command must have an end.
    let ends = words.iter().any(|word| super::is_one_of(Some(word), &[";", "+"]));
    match unsure > 1 || unsure == 1 && ends || words.contains(&Word::Unknown) {
        true => Runs::Anything,
        false => Runs::Commands(commands, Vec::new()),
    }
}

/// Shells that take `-o name` anywhere in a group of letters, as POSIX says.
const PLAIN: [&str; 5] = ["sh", "bash", "rbash", "dash", "ash"];

/// Long options of bash, which it also accepts with one dash.
const LONG: &str = "debug debugger dump-po-strings dump-strings help init-file login noediting noprofile norc posix \
     pretty-print protected rcfile restricted verbose version wordexp";

/// Returns what a shell runs: a file, its input, or the code after `-c`.
pub(super) fn shell(words: &[Word]) -> Runs {
    let is_plain = words[0].program().is_some_and(|name| PLAIN.contains(&base(name)));
    let (mut is_code, mut ended) = (false, false);
    let mut arguments = words[1..].iter();
    while let Some(word) = arguments.next() {
        let Some(text) = word.exact() else {
            return match is_code || word.may_be_option() || may_be_input(word) {
                true => Runs::Anything,
                false => Runs::Itself,
            };
        };
        match text {
            "-" | "--" if !ended => ended = true,
            _ if !ended && text.starts_with(['-', '+']) => {
                let letters = !text.starts_with("--");
                is_code |= letters && text.contains('c');
                // `-C` of fish runs a command before all others.
                let asks = letters && text.contains(['s', 'C']);
                let is_long = letters && LONG.split(' ').any(|known| known == &text[1..]);
                // Other shells take a value from the same word: the code, or the name of an option.
                let is_glued = letters
                    && text.find(['c', 'o', 'O']).is_some_and(|at| at + 1 < text.len())
                    || text.starts_with("--c");
                let is_foreign = !is_plain && (is_glued || text.starts_with("--init-command"));
                if asks || is_long || is_foreign || changes_reading(word) {
                    return Runs::Anything;
                }
                // With `nullglob`, a pattern may expand to no word.
                let changes = |it: &Word| {
                    changes_reading(it) || may_be_input(it) || it.exact() == Some("nullglob")
                };
                for _ in 0..values(text) {
                    if arguments.next().is_none_or(changes) {
                        return Runs::Anything;
                    }
                }
            }
            code if is_code => return Runs::Code(code.to_owned()),
            _ if may_be_input(word) => return Runs::Anything,
            _ => return Runs::Itself,
        }
    }
    Runs::Anything
}

/// True for an option that changes how a shell reads commands: the history replaces a line,
/// arguments set variables.
pub(super) fn changes_reading(word: &Word) -> bool {
    const NAMES: [&str; 3] = ["history", "histexpand", "keyword"];
    let Some(text) = word.exact() else { return word.start().is_empty() };
    let letters = text.starts_with('-') && !text.starts_with("--");
    NAMES.contains(&text) || letters && text.contains(['H', 'k'])
}

/// Returns how many of the next words are values of an option of a shell: one for each `o`, as in `-eoc pipefail`.
fn values(text: &str) -> usize {
    match text.starts_with("--") {
        true => usize::from(["--rcfile", "--init-file"].contains(&text)),
        false => text.matches(['o', 'O']).count(),
    }
}
