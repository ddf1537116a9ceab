//! Other names of subcommands and options, so that a rule about one also covers the others.

use super::base;
use super::commands::of_npm;
use crate::policy::shell::Word;

/// Programs; the name of a subcommand, then its aliases.
const ALIASES: [(&str, &str); 34] = [
    ("npm pnpm", "install i in ins inst insta instal isnt isnta isntal isntall add"),
    ("npm pnpm", "ci clean-install ic install-clean isntall-clean"),
    ("npm pnpm", "uninstall un unlink remove rm r"),
    ("npm pnpm", "run run-script rum urn"),
    ("npm pnpm", "test t tst"),
    ("npm pnpm", "update up upgrade udpate"),
    ("npm pnpm", "exec x"),
    ("npm pnpm", "init create innit"),
    ("npm pnpm", "link ln"),
    ("npm pnpm", "list ls la ll"),
    ("npm pnpm", "config c"),
    ("npm", "login adduser add-user"),
    ("npm", "view info show v"),
    ("npm", "explain why"),
    ("npm", "version verison"),
    ("npm", "docs home"),
    ("npm", "bugs issues"),
    ("npm", "owner author"),
    ("npm", "search s se find"),
    ("npm", "dist-tag dist-tags"),
    ("npm", "install-test it"),
    ("npm", "install-ci-test cit clean-install-test sit"),
    ("npm pnpm", "rebuild rb"),
    ("npm", "dedupe ddp"),
    ("yarn", "up upgrade"),
    ("cargo", "build b"),
    ("cargo", "check c"),
    ("cargo", "test t"),
    ("cargo", "run r"),
    ("cargo", "doc d"),
    ("cargo", "remove rm"),
    ("git", "add stage"),
    ("git", "push send-pack http-push"),
    ("pip pip3", "uninstall remove"),
];

/// Returns the subcommand of `program` that `word` stands for.
pub(crate) fn command<'w>(program: &str, word: &'w str) -> &'w str {
    let has = |names: &str, name: &str| names.split(' ').any(|known| known == name);
    let mut known = ALIASES.iter().filter(|(programs, _)| has(programs, base(program)));
    let found = known.find(|(_, names)| has(names, word));
    found.and_then(|(_, names)| names.split(' ').next()).unwrap_or(word)
}

/// True when `word` may stand for the subcommand `meant` of `program`, which also accepts
/// abbreviations.
pub(crate) fn may_mean(program: &str, word: &str, meant: &str) -> bool {
    match base(program) {
        "npm" => of_npm(&Word::Exact(word.to_owned())).contains(&meant),
        "ip" => !word.is_empty() && meant.starts_with(word),
        _ => false,
    }
}

/// Subcommands of docker that it also has in a group: the group, the name in it, the name without it.
const GROUPED: [(&str, &str, &str); 38] = [
    ("buildx", "build", "build"),
    ("buildx", "b", "build"),
    ("builder", "build", "build"),
    ("container", "attach", "attach"),
    ("container", "commit", "commit"),
    ("container", "cp", "cp"),
    ("container", "create", "create"),
    ("container", "diff", "diff"),
    ("container", "exec", "exec"),
    ("container", "export", "export"),
    ("container", "kill", "kill"),
    ("container", "logs", "logs"),
    ("container", "ls", "ps"),
    ("container", "pause", "pause"),
    ("container", "port", "port"),
    ("container", "ps", "ps"),
    ("container", "remove", "rm"),
    ("container", "rename", "rename"),
    ("container", "restart", "restart"),
    ("container", "rm", "rm"),
    ("container", "run", "run"),
    ("container", "start", "start"),
    ("container", "stats", "stats"),
    ("container", "stop", "stop"),
    ("container", "top", "top"),
    ("container", "unpause", "unpause"),
    ("container", "update", "update"),
    ("container", "wait", "wait"),
    ("image", "build", "build"),
    ("image", "history", "history"),
    ("image", "import", "import"),
    ("image", "load", "load"),
    ("image", "ls", "images"),
    ("image", "pull", "pull"),
    ("image", "push", "push"),
    ("image", "rm", "rmi"),
    ("image", "save", "save"),
    ("image", "tag", "tag"),
];

/// How many words are searched for a subcommand.
const MOST: usize = 64;

/// Returns another program with the commands of the program `name`.
pub(crate) fn other_program(name: &str) -> Option<&'static str> {
    match name {
        "docker" => Some("docker-compose"),
        "docker-compose" => Some("docker"),
        _ => None,
    }
}

/// Returns other commands that mean the same as `words`.
pub(crate) fn other_spellings(words: &[Word]) -> Vec<Vec<Word>> {
    let Some(name) = words.first().and_then(Word::program).map(base) else { return Vec::new() };
    match name {
        "rm" => of_rm(words),
        "git" => of_push(words),
        "docker" | "podman" | "nerdctl" => of_docker(words),
        "docker-compose" => vec![spelled(&["docker", "compose"], &words[1..])],
        _ => Vec::new(),
    }
}

/// Returns `before` and then `words`.
fn spelled(before: &[&str], words: &[Word]) -> Vec<Word> {
    let before = before.iter().map(|text| Word::Exact((*text).to_owned()));
    before.chain(words.iter().cloned()).collect()
}

/// `-R` and `--recursive` are `-r`, `--force` is `-f`; letters may be in one group or in several.
fn of_rm(words: &[Word]) -> Vec<Vec<Word>> {
    let is_long = |text: &str, option: &str| text.len() > 3 && option.starts_with(text);
    // Returns the letters that an option stands for.
    let letters_of = |word: &Word| match word.exact()? {
        text if is_long(text, "--recursive") => Some("r".to_owned()),
        text if is_long(text, "--force") => Some("f".to_owned()),
        text if text.starts_with("--") || text.len() < 2 => None,
        text => text.strip_prefix('-').map(str::to_owned),
    };
    let letters: String = words.iter().filter_map(letters_of).collect();
    let others: Vec<Word> =
        words[1..].iter().filter(|word| letters_of(word).is_none()).cloned().collect();
    let (is_recursive, is_forced) = (letters.contains(['r', 'R']), letters.contains('f'));
    let groups: &[&[&str]] = match (is_recursive, is_forced) {
        (true, true) => &[
            &["-rf"],
            &["-fr"],
            &["-Rf"],
            &["-fR"],
            &["-r", "--recursive", "--force"],
            &["-f", "--force", "--recursive"],
        ],
        (true, false) => &[&["-r"], &["-R"], &["--recursive"]],
        (false, true) => &[&["-f"], &["--force"]],
        (false, false) => &[],
    };
    let rest: String = letters.chars().filter(|it| !"rRf".contains(*it)).collect();
    let spelled = |options: &&[&str]| {
        let mut options: Vec<String> = options.iter().map(|it| (*it).to_owned()).collect();
        match options.first_mut().filter(|first| !first.starts_with("--")) {
            Some(first) => first.push_str(&rest),
            None if !rest.is_empty() => options.push(format!("-{rest}")),
            None => {}
        }
        let options: Vec<Word> = options.into_iter().map(Word::Exact).collect();
        let head = spelled(&["rm"], &[]);
        // A rule may name them after the files: `rm * --force`.
        [[&head[..], &options, &others].concat(), [&head[..], &others, &options].concat()]
    };
    groups.iter().flat_map(spelled).collect()
}

/// `-f`, and a `+` before what is pushed, are `--force`.
fn of_push(words: &[Word]) -> Vec<Vec<Word>> {
    let is_push = |word: &Word| word.exact() == Some("push");
    let Some(at) = words.iter().position(is_push) else { return Vec::new() };
    let (before, rest) = words.split_at(at + 1);
    let forces = |word: &Word| {
        let text = word.start();
        let is_group = text.starts_with('-') && !text.starts_with("--") && text.contains('f');
        is_group || text.starts_with('+') || text == "--force"
    };
    if !rest.iter().any(forces) {
        return Vec::new();
    }
    // A rule may name the option at the end: `git push * --force`.
    let spell = |option: &str| {
        let option = spelled(&[option], &[]);
        [[before, &option, rest].concat(), [before, rest, &option].concat()]
    };
    ["--force", "-f"].into_iter().flat_map(spell).collect()
}

/// Subcommands of docker have names with and without a group; `docker-compose` is `docker compose`.
fn of_docker(words: &[Word]) -> Vec<Vec<Word>> {
    let mut all = Vec::new();
    for at in 1..words.len().min(MOST) {
        // Options, and their values, may precede the subcommand.
        let is_subcommand = at == 1 || words[1].start().starts_with('-');
        let Some(text) = words[at].exact().filter(|_| is_subcommand) else { continue };
        if text == "compose" {
            all.push(spelled(&["docker-compose"], &words[at + 1..]));
        }
        let (before, rest) = (&words[..at], &words[at + 1..]);
        let second = rest.first().and_then(Word::exact);
        for (group, inner, plain) in GROUPED {
            if text == group && second == Some(inner) {
                all.push([before, &spelled(&[plain], &rest[1..])].concat());
            }
            if text == plain {
                all.push([before, &spelled(&[group, inner], rest)].concat());
            }
        }
        if ["container", "image"].contains(&text) && second.is_none() {
            all.push([before, rest].concat());
        }
    }
    all
}
