//! Aliases of subcommands, so that a rule about one also covers the others.

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
