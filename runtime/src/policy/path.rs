//! Path patterns, as in ignore files: `*` within a name, `**` across folders, a name without a slash anywhere. A
//! pattern that matches a folder matches everything in it.

use std::collections::BTreeSet;
use std::path::Path;

/// A pattern, and the folder that it is relative to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PathPattern {
    /// Absolute; empty means the root of the machine.
    base: String,
    /// The parts between slashes.
    parts: Vec<Part>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Name(String),
    Glob(Glob),
    /// `**`.
    Folders,
}

/// A name with wildcards.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Glob {
    /// The beginning and end of every name that it matches. Most other names fail this quick test.
    prefix: String,
    suffix: String,
    tokens: Vec<Token>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    Char(char),
    One,
    Any,
    Class { negated: bool, ranges: Vec<(char, char)> },
}

/// Whether `A` and `a` are the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Case {
    /// They differ: for rules that allow.
    Matters,
    /// They are the same: for rules that refuse, because on some disks they are.
    Folded,
}

/// The folders that patterns are relative to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Roots<'a> {
    pub(crate) workspace: &'a str,
    /// The worktree that contains the workspace.
    pub(crate) worktree: Option<&'a Worktree>,
    pub(crate) home: Option<&'a str>,
}

/// A worktree, and the checkouts that it is a copy of. A rule about a file there also applies to the copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Worktree {
    /// The folder of the run without the worktree.
    pub(crate) origin: String,
    /// The top folder of the worktree, as written and without links.
    folders: Vec<String>,
    /// The top folders of the checkouts.
    checkouts: Vec<String>,
}

impl Worktree {
    pub(crate) fn of(worktree: &posse_protocol::Worktree) -> Self {
        let own = &worktree.folder;
        let real = Path::new(own).canonicalize().ok();
        let real = real.and_then(|real| real.to_str().map(str::to_owned));
        let mut folders = vec![own.clone()];
        folders.extend(real.filter(|real| real != own));
        // The original may be a worktree itself.
        let main = worktree.data.strip_suffix("/.git").map(str::to_owned);
        let mut checkouts = vec![worktree.repository.clone()];
        checkouts.extend(main.filter(|main| *main != worktree.repository));
        Worktree { origin: worktree.origin.clone(), folders, checkouts }
    }

    pub(crate) fn folders(&self) -> impl Iterator<Item = &str> {
        self.folders.iter().map(String::as_str)
    }

    /// Returns the originals of the file at `path`, if it is in this worktree.
    pub(crate) fn copied_from(&self, path: &str) -> impl Iterator<Item = String> {
        let below = self.folders.iter().find_map(|folder| {
            let rest = path.strip_prefix(folder.as_str())?;
            (rest.is_empty() || rest.starts_with('/')).then(|| rest.to_owned())
        });
        let checkouts = below.is_some().then_some(&self.checkouts).into_iter().flatten();
        checkouts.map(move |top| format!("{top}{}", below.as_deref().unwrap_or_default()))
    }
}

/// The longest pattern. A longer one is a mistake.
const LONGEST: usize = 1_000;

/// Folders at the root of a machine: the author of `/etc/x` means that one.
const OF_MACHINES: [&str; 18] = [
    "etc", "home", "usr", "var", "tmp", "root", "proc", "sys", "dev", "opt", "Users", "mnt",
    "media", "srv", "run", "boot", "Library", "private",
];

/// Checks the form of `pattern`.
pub(crate) fn check(pattern: &str) -> Result<(), &'static str> {
    if pattern.is_empty() {
        return Err("it names no path; leave the parentheses out for all paths");
    }
    if pattern.len() > LONGEST {
        return Err("the pattern is too long");
    }
    if pattern.starts_with('!') {
        return Err("a pattern cannot be turned around with `!`; write a rule that denies");
    }
    if pattern.contains(['{', '}']) {
        return Err("braces are no pattern here; write a rule for each path");
    }
    if pattern.split('/').any(|part| part == "..") {
        return Err("the path leads out with `..`; write it out, with // at its beginning");
    }
    let below = pattern.strip_prefix('/').filter(|rest| !rest.starts_with('/'));
    if below.is_some_and(names_of_machines) {
        return Err("a path with one slash at its beginning is below the workspace; write two \
             for an absolute path, as in //etc/hosts");
    }
    if pattern.starts_with('~') && pattern != "~" && !pattern.starts_with("~/") {
        return Err("only ~/ means a home folder here");
    }
    for part in pattern.split('/').filter(|part| *part != "**") {
        tokens(part)?;
    }
    Ok(())
}

/// True when `path`, without its first slash, looks like a path of the machine.
pub(crate) fn names_of_machines(path: &str) -> bool {
    OF_MACHINES.contains(&path.split('/').next().unwrap_or_default())
}

impl PathPattern {
    /// Parses a pattern.
    pub(crate) fn parse(text: &str, roots: Roots<'_>, case: Case) -> Result<Self, &'static str> {
        check(text)?;
        let (base, rest) = split(text, roots)?;
        let mut parts: Vec<Part> = Vec::new();
        if is_anywhere(text) {
            parts.push(Part::Folders);
        }
        for name in names(rest) {
            let part = match name {
                "**" if parts.last() == Some(&Part::Folders) => continue,
                "**" => Part::Folders,
                name => part(&fold(name, case))?,
            };
            parts.push(part);
        }
        Ok(PathPattern { base: fold(&normal("", base), case), parts })
    }

    /// Returns the folder that it is relative to.
    pub(crate) fn base(&self) -> &str {
        &self.base
    }

    /// True when it matches the path `names` relative to its folder, or a folder on the way. If case does not matter,
    /// the caller passes lower-case names.
    pub(crate) fn means(&self, names: &[&str]) -> bool {
        walk(&self.parts, names)
    }
}

impl PathPattern {
    /// Returns the positions in the pattern after `names`. They alone decide what it matches below.
    pub(crate) fn places(&self, names: &[&str]) -> BTreeSet<usize> {
        let open = |mut places: BTreeSet<usize>| {
            for at in 0..self.parts.len().saturating_sub(1) {
                if places.contains(&at) && self.parts[at] == Part::Folders {
                    places.insert(at + 1);
                }
            }
            places
        };
        names.iter().fold(open(BTreeSet::from([0])), |places, name| {
            let mut after = BTreeSet::new();
            for at in places {
                match self.parts.get(at) {
                    // Everything in a matched folder matches.
                    None => after.extend([at]),
                    Some(Part::Folders) if at + 1 == self.parts.len() => after.extend([at, at + 1]),
                    Some(Part::Folders) => after.extend([at]),
                    Some(part) => after.extend(is_meant(part, name).then_some(at + 1)),
                }
            }
            open(after)
        })
    }

    /// True when it may match something in the folder at `names`, at any depth.
    pub(crate) fn reaches_into(&self, names: &[&str]) -> bool {
        fn reaches(parts: &[Part], names: &[&str]) -> bool {
            match (parts, names) {
                ([] | [Part::Folders, ..], _) | (_, []) => true,
                ([part, rest @ ..], [name, others @ ..]) => {
                    is_meant(part, name) && reaches(rest, others)
                }
            }
        }
        reaches(&self.parts, names)
    }
}

/// Splits a pattern into the folder that it is relative to and the rest.
fn split<'a>(text: &'a str, roots: Roots<'a>) -> Result<(&'a str, &'a str), &'static str> {
    if let Some(rest) = text.strip_prefix("//") {
        return Ok(("", rest));
    }
    if text == "~" || text.starts_with("~/") {
        let home = roots.home.ok_or("the home folder is not known")?;
        return Ok((home, text.trim_start_matches('~')));
    }
    Ok((roots.workspace, text))
}

/// True for a name that matches in every folder below.
fn is_anywhere(text: &str) -> bool {
    text != "~" && !text.trim_end_matches('/').contains('/')
}

/// Returns `pattern` with links resolved, if they lead elsewhere. It follows names that are spelled out and exist,
/// because files are known by their real paths.
pub(crate) fn behind_links(pattern: &str, roots: Roots<'_>) -> Option<String> {
    let (base, rest) = split(pattern, roots).ok()?;
    let names: Vec<&str> = names(rest).collect();
    let is_anywhere = is_anywhere(pattern);
    let is_plain = |name: &&&str| !is_anywhere && !name.contains(['*', '?', '[']);
    let spelled = names.iter().take_while(is_plain).count();
    (0..=spelled)
        .rev()
        .find_map(|count| {
            let written: Vec<String> =
                names[..count].iter().map(|name| name.replace('\\', "")).collect();
            let written = normal("", &format!("{base}/{}", written.join("/")));
            let real =
                Path::new(if written.is_empty() { "/" } else { &written }).canonicalize().ok()?;
            Some((written, real, count))
        })
        .filter(|(written, real, _)| real != Path::new(written) && !written.is_empty())
        .and_then(|(_, real, count)| {
            let anywhere = if is_anywhere { "/**" } else { "" };
            Some(format!("/{}{anywhere}/{}", escaped(real.to_str()?), names[count..].join("/")))
        })
}

/// Returns a pattern that matches `path`. A character that cannot be written becomes `?`.
pub(crate) fn escaped(path: &str) -> String {
    path.chars().fold(String::new(), |mut text, char| {
        match char {
            '*' | '?' | '[' | '\\' => text.extend(['\\', char]),
            '{' | '}' => text.push('?'),
            char => text.push(char),
        }
        text
    })
}

/// Returns the folder that `pattern` is relative to, if that is not the workspace.
pub(crate) fn folder_elsewhere(pattern: &str, roots: Roots<'_>) -> Option<String> {
    if pattern.starts_with("//") {
        return Some("/".to_owned());
    }
    let of_home = pattern == "~" || pattern.starts_with("~/");
    let home = roots.home.filter(|_| of_home)?;
    let real = Path::new(home).canonicalize().ok();
    Some(real.and_then(|real| real.to_str().map(str::to_owned)).unwrap_or_else(|| home.to_owned()))
}

/// Returns the names of `path` relative to `folder`, if it is inside. `path` is absolute, without `.` and `..`.
pub(crate) fn below<'p>(path: &'p str, folder: &str) -> Option<Vec<&'p str>> {
    let rest = path.strip_prefix(folder)?;
    (rest.is_empty() || rest.starts_with('/')).then(|| names(rest).collect())
}

/// Returns `path` in the form that patterns of this case compare.
pub(crate) fn fold(path: &str, case: Case) -> String {
    match case {
        Case::Matters => path.to_owned(),
        Case::Folded => path.to_lowercase(),
    }
}

/// Returns an absolute path without `.`, `..` and repeated slashes, without looking at the disk.
pub(crate) fn normal(workspace: &str, path: &str) -> String {
    let base = if path.starts_with('/') { "" } else { workspace };
    let mut kept: Vec<&str> = Vec::new();
    for name in names(base).chain(names(path)) {
        match name {
            ".." => {
                kept.pop();
            }
            name => kept.push(name),
        }
    }
    kept.iter().fold(String::new(), |mut text, name| {
        text.push('/');
        text.push_str(name);
        text
    })
}

fn names(path: &str) -> impl Iterator<Item = &str> {
    path.split('/').filter(|name| !name.is_empty() && *name != ".")
}

fn part(name: &str) -> Result<Part, &'static str> {
    let tokens = tokens(name)?;
    let plain = |token: &Token| match token {
        Token::Char(char) => Some(*char),
        _ => None,
    };
    let prefix: String = tokens.iter().map_while(plain).collect();
    if prefix.chars().count() == tokens.len() {
        return Ok(Part::Name(prefix));
    }
    let backwards: String = tokens.iter().rev().map_while(plain).collect();
    let suffix = backwards.chars().rev().collect();
    Ok(Part::Glob(Glob { prefix, suffix, tokens }))
}

fn tokens(name: &str) -> Result<Vec<Token>, &'static str> {
    let mut chars = name.chars().peekable();
    let mut tokens = Vec::new();
    while let Some(char) = chars.next() {
        tokens.push(match char {
            '*' if tokens.last() == Some(&Token::Any) => continue,
            '*' => Token::Any,
            '?' => Token::One,
            '\\' => Token::Char(chars.next().ok_or("the pattern ends in a backslash")?),
            '[' => {
                let negated = chars.next_if(|char| matches!(char, '!' | '^')).is_some();
                let mut ranges = Vec::new();
                loop {
                    let open = "a [ of the pattern is not closed; write \\[ for the sign itself";
                    let from = chars.next().ok_or(open)?;
                    if from == ']' && !ranges.is_empty() {
                        break;
                    }
                    if from == '[' && chars.peek().is_some_and(|next| ":=.".contains(*next)) {
                        return Err(
                            "classes such as [:alpha:] are no pattern here; write [A-Za-z]",
                        );
                    }
                    let mut to = from;
                    if chars.peek() == Some(&'-') {
                        chars.next();
                        match chars.next().ok_or(open)? {
                            ']' => {
                                ranges.extend([(from, from), ('-', '-')]);
                                break;
                            }
                            last => to = last,
                        }
                    }
                    // In lower case the range would be another one, or invalid.
                    if from > to || kind(from) != kind(to) {
                        return Err(
                            "a range of the pattern goes from one kind of sign to another, or \
                             backwards; write each range by itself, as in [A-Za-z_]",
                        );
                    }
                    ranges.push((from, to));
                }
                Token::Class { negated, ranges }
            }
            char => Token::Char(char),
        });
    }
    Ok(tokens)
}

/// Returns the kind of `char`; only characters of one kind make a range.
fn kind(char: char) -> (bool, bool, bool) {
    (char.is_lowercase(), char.is_uppercase(), char.is_numeric())
}

/// True when `parts` match the path of `names`, or a folder on its way.
fn walk(parts: &[Part], names: &[&str]) -> bool {
    match parts {
        [] => true,
        // Everything inside, but not the folder itself.
        [Part::Folders] => !names.is_empty(),
        [Part::Folders, rest @ ..] => (0..names.len()).any(|at| walk(rest, &names[at..])),
        [part, rest @ ..] => match names.split_first() {
            Some((name, others)) => is_meant(part, name) && walk(rest, others),
            None => false,
        },
    }
}

fn is_meant(part: &Part, name: &str) -> bool {
    match part {
        Part::Name(known) => known == name,
        // The empty text is skipped: comparing it takes longer than it seems.
        Part::Glob(glob) => {
            (glob.suffix.is_empty() || name.ends_with(&glob.suffix))
                && (glob.prefix.is_empty() || name.starts_with(&glob.prefix))
                && matches(&glob.tokens, name)
        }
        Part::Folders => true,
    }
}

/// Matches with at most one point to backtrack to, so that no pattern is slow.
fn matches(tokens: &[Token], name: &str) -> bool {
    let chars: Vec<char> = name.chars().collect();
    let (mut token, mut char) = (0, 0);
    let mut back: Option<(usize, usize)> = None;
    while char < chars.len() {
        let here = tokens.get(token);
        let fits = match here {
            Some(Token::Any) => {
                back = Some((token + 1, char));
                token += 1;
                continue;
            }
            Some(Token::One) => true,
            Some(Token::Char(known)) => *known == chars[char],
            Some(Token::Class { negated, ranges }) => {
                let within = |(from, to): &(char, char)| (*from..=*to).contains(&chars[char]);
                ranges.iter().any(within) != *negated
            }
            None => false,
        };
        match (fits, back) {
            (true, _) => (token, char) = (token + 1, char + 1),
            (false, Some((after, from))) => {
                back = Some((after, from + 1));
                (token, char) = (after, from + 1);
            }
            (false, None) => return false,
        }
    }
    tokens[token..].iter().all(|token| *token == Token::Any)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn check_means(pattern: &str, path: &str, expected: bool) {
        let roots = Roots { workspace: "/w/project", worktree: None, home: Some("/home/ada") };
        let compiled = PathPattern::parse(pattern, roots, Case::Matters).unwrap();
        let path = normal(roots.workspace, path);
        let found = below(&path, compiled.base()).is_some_and(|names| compiled.means(&names));
        assert_eq!(found, expected, "{pattern} {path}");
    }

    #[test]
    fn patterns_mean_paths_as_in_ignore_files() {
        for (pattern, path, expected) in [
            ("src/**", "src/a/b.rs", true),
            ("src/**", "src", false),
            ("src/**", "srcs/a", false),
            ("src/**", "a/src/b", false),
            ("./src/**", "src/a", true),
            ("/src/*.rs", "src/a.rs", true),
            ("/src/*.rs", "src/b/a.rs", false),
            ("docs/*.md", "docs/x.md", true),
            ("docs/*.md", "docs/x.md.bak", false),
            (".env", "a/b/.env", true),
            (".env", ".env/x", true),
            (".env*", ".env.local", true),
            ("*.pem", "keys/a.pem", true),
            ("secrets/", "secrets/x", true),
            ("secrets", "a/secrets/x/y", true),
            ("a/**/b", "a/b", true),
            ("a/**/b", "a/x/y/b/z", true),
            ("**/x", "x", true),
            ("**", "anything/at/all", true),
            ("//etc/hosts", "/etc/hosts", true),
            ("//etc/**", "/etc/ssh/x", true),
            ("//etc/**", "etc/x", false),
            ("~/.ssh/**", "/home/ada/.ssh/id", true),
            ("~/.ssh/**", "/home/adam/.ssh/id", false),
            ("file[0-9].txt", "file7.txt", true),
            ("file[!0-9].txt", "file7.txt", false),
            ("a\\*b", "a*b", true),
            ("a\\*b", "axb", false),
        ] {
            check_means(pattern, path, expected);
        }
    }

    #[test]
    fn folders_in_which_a_pattern_means_nothing_are_told() {
        let roots = Roots { workspace: "/w", worktree: None, home: None };
        for (pattern, folder, expected) in [
            ("/.env", "", true),
            ("/.env", "src", false),
            ("/*/.env", "src", true),
            ("/*/.env", "src/a", false),
            (".env", "a/b/c", true),
            ("docs/*.md", "docs", true),
            ("docs/*.md", "src", false),
            ("docs/**/x", "docs/a/b", true),
            ("secrets/", "secrets/a", true),
        ] {
            let compiled = PathPattern::parse(pattern, roots, Case::Matters).unwrap();
            let names: Vec<&str> = names(folder).collect();
            assert_eq!(compiled.reaches_into(&names), expected, "{pattern} {folder}");
        }
    }

    #[test]
    fn a36_paths_are_compared_by_their_names_and_without_detours() {
        check_means("//w/project/**", "/w/project-evil/x", false);
        check_means("src/**", "src/../secret", false);
        check_means("src/**", "docs/../src/./a//b/", true);
        check_means("secret/**", "src/../secret/x", true);
        check_means("src/**", "/w/project/src/a", true);
        check_means("src/**", "/w/other/src/a", false);
    }

    #[test]
    fn links_on_the_way_of_a_pattern_are_followed() {
        use std::os::unix::fs::symlink;
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        let at = |name: &str| root.join(name).to_str().unwrap().to_owned();
        std::fs::create_dir_all(root.join("real/.ssh")).unwrap();
        std::fs::create_dir_all(root.join("w/conf[1]")).unwrap();
        std::fs::write(root.join("w/conf[1]/prod.env"), "x").unwrap();
        symlink(root.join("real"), root.join("home")).unwrap();
        symlink("conf[1]/prod.env", root.join("w/.env")).unwrap();
        symlink("conf[1]", root.join("w/vault")).unwrap();
        symlink("nowhere", root.join("w/gone")).unwrap();
        let (workspace, home) = (at("w"), at("home"));
        let roots = Roots { workspace: &workspace, worktree: None, home: Some(&home) };
        let check = |pattern: &str, expected: Option<String>| {
            let found = behind_links(pattern, roots).map(|it| it.trim_end_matches('/').to_owned());
            assert_eq!(found, expected, "{pattern}");
        };
        check("~/.ssh/**", Some(format!("/{}/real/.ssh/**", root.display())));
        check("~/*.pem", Some(format!("/{}/real/*.pem", root.display())));
        check(&format!("/{home}/x"), Some(format!("/{}/real/x", root.display())));
        check("./.env", Some(format!("/{workspace}/conf\\[1]/prod.env")));
        check("vault/*.key", Some(format!("/{workspace}/conf\\[1]/*.key")));
        for same in [".env", "./gone", "conf\\[1]/**", "//etc", "**", "//**"] {
            check(same, None);
        }
        let linked = at("home");
        let roots = Roots { workspace: &linked, worktree: None, home: None };
        let found = behind_links(".env", roots);
        assert_eq!(found, Some(format!("/{}/real/**/.env", root.display())));
    }

    #[test]
    fn what_refuses_does_not_care_about_case() {
        let roots = Roots { workspace: "/W/Project", worktree: None, home: None };
        let pattern = PathPattern::parse(".Env", roots, Case::Folded).unwrap();
        let path = fold("/W/Project/a/.ENV", Case::Folded);
        assert!(pattern.means(&below(&path, pattern.base()).unwrap()));
    }

    #[test]
    fn patterns_that_mean_something_else_than_they_seem_to_are_refused() {
        for wrong in
            ["", "!x", "{a,b}", "../x", "a/../../b", "/etc/passwd", "~root/x", "a[b", "x\\"]
                .into_iter()
                .chain(["x[[:alpha:]]", "[A-_]", "[A-z]", "[z-a]", "[[=a=]]", "[9-A]"])
        {
            assert!(check(wrong).is_err(), "{wrong}");
        }
    }
}
