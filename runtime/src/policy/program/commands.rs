//! Subcommands, such as `test` of npm: which of them a rule for the whole program allows, and which
//! of them Posse offers a rule for.

use super::aliases::command as command_name;
use super::table::LOOKING;
use super::{Runs, base};
use crate::policy::shell::Word;

/// Programs; words that may precede the subcommand without effect; subcommands that a rule for the
/// whole program allows. Any other subcommand may run anything: `npm exe` is `npm exec`, `cargo
/// watch` and `gh x` are whatever is installed under that name.
const OPEN: [(&str, &str, &str); 7] = [
    (
        "npm",
        "-s --silent -q --quiet --offline --no-audit --no-fund --no-color",
        "access audit bugs cache ci clean-install completion dedupe ddp diff docs doctor explain \
         why find-dupes fund help i in ins inst insta instal install add install-test it \
         install-ci-test cit link ln list ls la ll login logout outdated owner pack ping pkg \
         prefix profile prune publish query rebuild rb repo restart root run run-script rum urn \
         sbom search s se find shrinkwrap star stars start stop team test t tst token uninstall un \
         unlink remove rm r unpublish unstar update up upgrade version view info show v whoami \
         -v --version -h --help",
    ),
    (
        "pnpm",
        "-s --silent -r --recursive --offline --no-color -w --workspace-root",
        "add audit fetch import i install ci licenses link ln list ls la ll outdated pack prune \
         publish rebuild rb remove rm root run run-script start store test t tst uninstall un \
         unlink update up upgrade why -v --version -h --help",
    ),
    (
        "yarn",
        "-s --silent --offline",
        "add audit build cache check constraints dedupe dev format global import info install \
         licenses link lint list outdated pack publish rebuild remove run start test \
         typecheck unlink up upgrade upgrade-interactive version versions why -v --version -h --help",
    ),
    (
        "cargo",
        "-q --quiet -v --verbose -vv --offline --locked --frozen --color=always --color=never \
         --color=auto",
        "add audit b bench build c check clean clippy d deny doc fetch fix fmt generate-lockfile \
         hack help info llvm-cov locate-project login logout machete metadata nextest outdated \
         owner package pkgid publish r remove report rm run search semver-checks t test tree \
         udeps uninstall update vendor verify-project version xtask yank -V --version -h --help \
         --list",
    ),
    (
        "go",
        "",
        "build clean doc fix fmt get help list mod run telemetry test tool version vet work",
    ),
    (
        "gh",
        "",
        "agent-task api attestation auth browse cache completion gist gpg-key help issue label \
         org pr preview project release repo ruleset run search secret ssh-key status variable \
         version workflow --version --help",
    ),
    (
        "ip",
        "-4 -6 -0 -br -brief -c -color -d -details -h -human -j -json -o -oneline -p -pretty -s \
         -stats -statistics -t -timestamp",
        "a ad add addr address addrlabel l li lin link maddr maddress monitor mroute mrule n ne \
         nei neigh neighbor neighbour netconf nexthop ntable r ro rou rout route ru rul rule stats \
         tcp_metrics token tunnel tuntap xfrm help -V -Version",
    ),
];

/// Subcommands that Posse offers a rule for when it asks, by program: other arguments make them no
/// more dangerous.
const OFFERED: [(&str, &str); 15] = [
    ("git", LOOKING),
    ("git", "add commit fetch switch merge cherry-pick revert mv"),
    ("cargo", "build b check c test t clippy fmt doc d tree metadata update fetch clean"),
    ("npm", "ci ls list outdated view"),
    ("go", "build vet fmt list mod doc version"),
    ("docker podman", "ps images logs inspect version info stats top"),
    ("kubectl", "get describe logs version explain top cluster-info api-resources"),
    ("pip pip3", "list show freeze check"),
    ("uv", "sync lock tree"),
    ("systemctl", "status is-active is-enabled list-units"),
    ("brew", "list info search"),
    ("terraform", "validate fmt"),
    ("helm", "list status lint"),
    ("gh", "pr issue run repo release workflow search"),
    ("glab", "mr issue release"),
];

/// Subcommands whose second word says what they do.
const TWO: [&str; 10] =
    ["pr", "issue", "run", "repo", "release", "workflow", "search", "mr", "ci", "label"];

/// Second words that only read.
const SECOND: &str = "view list diff status checks watch prs issues repos commits code";

fn has(list: &str, name: &str) -> bool {
    list.split_whitespace().any(|known| known == name)
}

/// True when the words that a rule spells out, starting with the program, name a subcommand.
fn says_command(spelled: &[Word]) -> bool {
    let is_option = |word: &&Word| word.start().starts_with('-');
    let is_open = |word: &&Word| is_option(word) && !word.start().contains('=');
    let values = spelled.iter().filter(is_open).count();
    spelled.iter().filter(|word| !is_option(word)).count() > values
}

/// Returns the subcommand of `words` that a rule leaves open if it spells out the first `said`
/// words, if that subcommand may run anything.
pub(super) fn left_open(words: &[Word], said: usize) -> Option<String> {
    let name = base(words.first()?.exact()?);
    let (_, before, known) = OPEN.iter().find(|(program, ..)| *program == name)?;
    let spelled = &words[1.min(words.len())..said.min(words.len())];
    if says_command(spelled) {
        return None;
    }
    for word in &words[1..] {
        let Some(text) = word.exact() else { return Some(format!("which command of `{name}`")) };
        let is_plain = |it: char| it.is_ascii_alphanumeric() || ".-_".contains(it);
        let is_toolchain =
            name == "cargo" && text.strip_prefix('+').is_some_and(|it| it.chars().all(is_plain));
        if is_toolchain || has(before, text) {
            continue;
        }
        return match has(known, text) {
            true => None,
            false => Some(format!("`{name} {}`", text.chars().take(60).collect::<String>())),
        };
    }
    None
}

/// Returns how many of `words` a rule spells out that Posse offers for similar commands; `None` if
/// only the whole command is safe.
pub(crate) fn offered(words: &[&str]) -> Option<usize> {
    let (name, command) = (*words.first()?, words.get(1).copied());
    if name.contains('/') {
        return None;
    }
    let mut lists = OFFERED.iter().filter(|(programs, _)| has(programs, name)).peekable();
    if lists.peek().is_none() {
        return super::is_offered(name).then_some(1);
    }
    // The second word must be the subcommand itself: an option there may have a value.
    let command = command?;
    if !lists.any(|(_, known)| has(known, command)) {
        return None;
    }
    match TWO.contains(&command) && ["gh", "glab"].contains(&name) {
        true => words.get(2).filter(|second| has(SECOND, second)).map(|_| 3),
        false => Some(2),
    }
}

/// The subcommands of npm with all their names. npm accepts abbreviations.
const NPM: &str = "access adduser add-user login audit bugs issues cache ci clean-install ic \
     install-clean isntall-clean completion config c dedupe ddp deprecate diff dist-tag dist-tags \
     docs home doctor edit exec x explain why explore find-dupes fund get help hlep help-search \
     hook init create innit install add i in ins inst insta instal isnt isnta isntal isntall \
     install-ci-test cit clean-install-test sit install-test it link ln list ls la ll logout org \
     ogr outdated owner author pack ping pkg prefix profile prune publish query rebuild rb repo \
     restart root run run-script rum urn sbom search s se find set set-script shrinkwrap star \
     stars start stop team test t tst token undeprecate uninstall unlink remove rm r un unpublish \
     unstar update up upgrade udpate version verison view info show v whoami";

/// Returns the subcommands of npm that `word` may stand for.
pub(super) fn of_npm(word: &Word) -> Vec<&'static str> {
    let may_be = |name: &&str| match word.exact() {
        Some(text) => !text.is_empty() && name.starts_with(text),
        None => could_be(word, name) || name.starts_with(word.start()) && *word != Word::Unknown,
    };
    let exact = NPM.split_whitespace().find(|name| word.exact() == Some(name));
    let names: Vec<_> = match exact {
        Some(name) => vec![name],
        None => NPM.split_whitespace().filter(may_be).collect(),
    };
    names.into_iter().map(|name| command_name("npm", name)).collect()
}

/// Returns what `words` run, if they are a subcommand of npm or a similar program that runs
/// programs.
pub(super) fn runs(words: &[Word]) -> Option<Runs> {
    const RUNNING: [&str; 2] = ["exec", "explore"];
    let (head, rest) = words.split_first()?;
    let name = base(head.exact()?);
    let is_option = |word: &Word| word.start().starts_with('-');
    let first = rest.first()?;
    match name {
        "npm" => {
            // A word after an option may be its value.
            let many = if is_option(first) { 2 } else { 1 };
            let mut may_be = rest.iter().filter(|word| !is_option(word)).take(many);
            let running = may_be.find(|word| of_npm(word).iter().any(|it| RUNNING.contains(it)))?;
            let is_exec = !is_option(first) && running.exact().is_some();
            if !is_exec || running.exact() == Some("exec") {
                return (!is_exec).then_some(Runs::Anything);
            }
            let exec = [head.clone(), Word::Exact("exec".to_owned())].into_iter();
            Some(super::runs(&exec.chain(rest[1..].iter().cloned()).collect::<Vec<_>>()))
        }
        // An unknown subcommand is a program.
        "pnpm" | "yarn" => {
            let command = first.exact().filter(|it| !it.starts_with('-'))?;
            let (.., known) = OPEN.iter().find(|(program, ..)| *program == name)?;
            let is_known = has(known, command) || has(NPM, command) || has(SPECIAL, command);
            (!is_known).then(|| Runs::Commands(vec![rest.to_vec()], Vec::new()))
        }
        _ => None,
    }
}

/// Subcommands of pnpm and yarn that npm lacks.
const SPECIAL: &str = "dlx node workspace workspaces plugin patch patch-commit deploy env setup \
     recursive multi m self-update approve-builds unplug npm stage bin";

/// True when the shell may expand `word` to `text`: it is that text, or a pattern for it.
pub(super) fn could_be(word: &Word, text: &str) -> bool {
    match word {
        Word::Exact(known) => known == text,
        Word::Begins(start) => text.starts_with(start.as_str()),
        Word::Partly { start, end } => {
            !start.is_empty() && text.starts_with(start.as_str()) && text.ends_with(end.as_str())
        }
        Word::Numbered(_) | Word::Unknown => false,
    }
}
