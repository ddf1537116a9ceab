//! Reads settings of git as git does, and decides which of them are harmless.
//!
//! A repository that an agent has made or changed may have only harmless settings. These name no
//! program, and no file that git obeys. A list of dangerous settings would never be complete, so this
//! is a list of harmless ones.

use std::ops::Range;

/// The maximum number of bytes of a settings file to read.
pub(super) const MOST: u64 = 1 << 20;

/// One setting in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Setting {
    /// In lower case, such as `core`.
    pub section: String,
    /// The quoted part after the section, or an empty text.
    pub part: String,
    /// In lower case, such as `fsmonitor`.
    pub name: String,
    /// `None` if there is no `=`, which means true.
    pub value: Option<String>,
    /// Its position in the file, with the end of its line.
    pub range: Range<usize>,
}

impl Setting {
    /// The key as people write it: `remote.origin.url`.
    pub(super) fn key(&self) -> String {
        let parts = [&self.section, &self.part, &self.name];
        let parts = parts.into_iter().filter(|part| !part.is_empty());
        parts.map(String::as_str).collect::<Vec<_>>().join(".")
    }

    /// Returns true if it makes git neither run a program nor obey another file. The caller decides
    /// about `core.worktree`, because that is harmless only within a folder that the caller knows.
    pub(super) fn is_harmless(&self) -> bool {
        let Setting { section, name, .. } = self;
        let value = self.value.as_deref().unwrap_or("true");
        if NOTHING.contains(&(section.as_str(), name.as_str(), value)) {
            return true;
        }
        // An address with a program: `ext::sh -c …`.
        let names_program = |(program, _): (&str, &str)| {
            program.bytes().all(|letter| letter.is_ascii_alphanumeric() || b"+-.".contains(&letter))
        };
        // A scheme without a transport in git names a program, too: `ext://…`.
        let scheme = value.split_once("://").map(|(scheme, _)| scheme.to_ascii_lowercase());
        let is_foreign = scheme.is_some_and(|scheme| !SCHEMES.contains(&scheme.as_str()));
        let is_address = is_foreign || value.split_once("::").is_some_and(names_program);
        if (section == "remote" || section == "submodule") && name.ends_with("url") {
            return !is_address;
        }
        // Git accepts an address there, too.
        if is_address && TO_REMOTES.contains(&(section.as_str(), name.as_str())) {
            return false;
        }
        let is_plain = |(known, names): &(&str, &[&str])| {
            section == known && (names.is_empty() || names.contains(&name.as_str()))
        };
        let lists = if self.part.is_empty() { HARMLESS } else { HARMLESS_PARTS };
        lists.iter().any(is_plain)
    }
}

/// Schemes of addresses that git can reach without other programs.
const SCHEMES: [&str; 9] =
    ["file", "ftp", "ftps", "git", "git+ssh", "http", "https", "ssh", "ssh+git"];

/// Values that name no program and no file. People and tests set them to keep git quiet.
const NOTHING: &[(&str, &str, &str)] = &[
    ("core", "hookspath", "/dev/null"),
    ("core", "hookspath", ""),
    ("core", "fsmonitor", "false"),
    ("core", "fsmonitor", ""),
    ("core", "pager", "cat"),
    ("core", "pager", ""),
    ("core", "editor", "true"),
    ("core", "editor", "false"),
    ("core", "editor", ":"),
    ("credential", "helper", ""),
];

/// Settings that name a remote.
const TO_REMOTES: &[(&str, &str)] = &[
    ("branch", "remote"),
    ("branch", "pushremote"),
    ("remote", "pushdefault"),
    ("checkout", "defaultremote"),
];

/// Sections without a quoted part, and their harmless names. An empty list means all names.
const HARMLESS: &[(&str, &[&str])] = &[
    (
        "core",
        &[
            "repositoryformatversion",
            "filemode",
            "bare",
            "logallrefupdates",
            "ignorecase",
            "precomposeunicode",
            "symlinks",
            "autocrlf",
            "eol",
            "safecrlf",
            "quotepath",
            "abbrev",
            "compression",
            "bigfilethreshold",
            "sharedrepository",
            "sparsecheckout",
            "sparsecheckoutcone",
            "untrackedcache",
            "preloadindex",
            "commentchar",
            "commentstring",
            "whitespace",
            "trustctime",
            "checkstat",
            "longpaths",
            "multipackindex",
            "commitgraph",
        ],
    ),
    // Without `partialclone`: with it, any git command would ask that remote for missing objects.
    (
        "extensions",
        &[
            "compatobjectformat",
            "noop",
            "objectformat",
            "preciousobjects",
            "refstorage",
            "relativeworktrees",
            "worktreeconfig",
        ],
    ),
    ("user", &["name", "email", "useconfigonly", "signingkey"]),
    ("author", &["name", "email"]),
    ("committer", &["name", "email"]),
    ("init", &["defaultbranch", "defaultobjectformat", "defaultrefformat"]),
    ("commit", &["gpgsign", "verbose", "status", "cleanup"]),
    ("tag", &["gpgsign", "sort", "forcesignannotated"]),
    ("push", &["default", "autosetupremote", "followtags", "gpgsign"]),
    ("pull", &["rebase", "ff"]),
    ("fetch", &["prune", "prunetags", "parallel", "writecommitgraph"]),
    ("merge", &["ff", "conflictstyle", "renames", "renamelimit", "stat", "log"]),
    ("rebase", &["autosquash", "autostash", "stat", "updaterefs"]),
    (
        "receive",
        &["denynonfastforwards", "denycurrentbranch", "denydeletes", "advertisepushoptions"],
    ),
    ("diff", &["algorithm", "renames", "renamelimit", "colormoved", "mnemonicprefix", "noprefix"]),
    ("submodule", &["active", "fetchjobs"]),
    ("remote", &["pushdefault"]),
    ("checkout", &["defaultremote", "guess", "workers"]),
    ("rerere", &["enabled", "autoupdate"]),
    ("gc", &["auto", "autopacklimit", "autodetach"]),
    ("maintenance", &["auto", "autodetach", "strategy"]),
    ("pack", &[]),
    ("index", &[]),
    ("feature", &[]),
    ("status", &[]),
    ("color", &["ui", "status", "diff", "branch"]),
    ("advice", &[]),
    ("lfs", &["repositoryformatversion"]),
    ("http", &["postbuffer"]),
];

/// The same for sections with a quoted part.
const HARMLESS_PARTS: &[(&str, &[&str])] = &[
    (
        "remote",
        &[
            "fetch",
            "push",
            "mirror",
            "tagopt",
            "prune",
            "prunetags",
            "skipfetchall",
            "skipdefaultupdate",
            "followremotehead",
            "gh-resolved",
        ],
    ),
    (
        "branch",
        &[
            "remote",
            "merge",
            "rebase",
            "pushremote",
            "description",
            "vscode-merge-base",
            "github-pr-owner-number",
        ],
    ),
    ("submodule", &["active", "branch", "ignore"]),
    ("color", &[]),
];

/// Parses the settings in `text`. `None` if git would not accept it as settings.
pub(super) fn read(text: &[u8]) -> Option<Vec<Setting>> {
    // Git takes the part before a NUL for the whole key.
    if text.contains(&0) {
        return None;
    }
    let start = if text.starts_with(b"\xEF\xBB\xBF") { 3 } else { 0 };
    let mut reader = Reader { text, at: start };
    let (mut section, mut part) = (String::new(), String::new());
    let mut settings = Vec::new();
    loop {
        let begins = reader.at;
        match reader.next() {
            None => return Some(settings),
            Some(b' ' | b'\t' | b'\r' | b'\n') => {}
            Some(b'#' | b';') => reader.skip_line(),
            Some(b'[') => (section, part) = reader.section()?,
            Some(letter) if letter.is_ascii_alphabetic() => {
                let (name, value) = reader.setting(letter)?;
                let (section, part) = (section.clone(), part.clone());
                settings.push(Setting { section, part, name, value, range: begins..reader.at });
            }
            Some(_) => return None,
        }
    }
}

struct Reader<'t> {
    text: &'t [u8],
    at: usize,
}

impl Reader<'_> {
    /// The next character. The end of a line is one character in either form.
    fn next(&mut self) -> Option<u8> {
        let letter = *self.text.get(self.at)?;
        self.at += 1;
        if letter == b'\r' && self.text.get(self.at) == Some(&b'\n') {
            self.at += 1;
            return Some(b'\n');
        }
        Some(letter)
    }

    fn skip_line(&mut self) {
        while !matches!(self.next(), None | Some(b'\n')) {}
    }

    /// The content of the brackets: a name, and the part in quotes or after a dot.
    fn section(&mut self) -> Option<(String, String)> {
        let mut name = Vec::new();
        loop {
            match self.next()? {
                b']' => break,
                b' ' | b'\t' => return Some((lower(&name)?, self.quoted_part()?)),
                letter if is_of_key(letter) || letter == b'.' => name.push(letter),
                _ => return None,
            }
        }
        let name = lower(&name)?;
        Some(match name.split_once('.') {
            Some((section, part)) => (section.to_owned(), part.to_owned()),
            None => (name, String::new()),
        })
    }

    fn quoted_part(&mut self) -> Option<String> {
        let mut letter = self.next()?;
        while letter == b' ' || letter == b'\t' {
            letter = self.next()?;
        }
        if letter != b'"' {
            return None;
        }
        let mut part = Vec::new();
        loop {
            match self.next()? {
                b'\n' => return None,
                b'"' => break,
                b'\\' => match self.next()? {
                    b'\n' => return None,
                    letter => part.push(letter),
                },
                letter => part.push(letter),
            }
        }
        if self.next()? != b']' {
            return None;
        }
        Some(String::from_utf8_lossy(&part).into_owned())
    }

    /// A name that begins with `first`, and its value.
    fn setting(&mut self, first: u8) -> Option<(String, Option<String>)> {
        let mut name = vec![first];
        let mut letter = self.next();
        while let Some(more) = letter.filter(|letter| is_of_key(*letter)) {
            name.push(more);
            letter = self.next();
        }
        while matches!(letter, Some(b' ' | b'\t')) {
            letter = self.next();
        }
        let name = lower(&name)?;
        match letter {
            None | Some(b'\n') => Some((name, None)),
            Some(b'=') => Some((name, Some(self.value()?))),
            Some(_) => None,
        }
    }

    fn value(&mut self) -> Option<String> {
        let (mut value, mut quoted) = (Vec::new(), false);
        // The length of the value without white space at its end.
        let mut kept = 0;
        loop {
            match self.next() {
                None | Some(b'\n') if quoted => return None,
                None | Some(b'\n') => break,
                Some(b' ' | b'\t' | b'\r') if !quoted && value.is_empty() => continue,
                Some(letter @ (b' ' | b'\t' | b'\r')) if !quoted => {
                    value.push(letter);
                    continue;
                }
                Some(b'#' | b';') if !quoted => {
                    self.skip_line();
                    break;
                }
                Some(b'"') => quoted = !quoted,
                Some(b'\\') => match self.next()? {
                    b'\n' => {}
                    b't' => value.push(b'\t'),
                    b'b' => value.push(8),
                    b'n' => value.push(b'\n'),
                    letter @ (b'\\' | b'"') => value.push(letter),
                    _ => return None,
                },
                Some(letter) => value.push(letter),
            }
            kept = value.len();
        }
        value.truncate(kept);
        Some(String::from_utf8_lossy(&value).into_owned())
    }
}

fn is_of_key(letter: u8) -> bool {
    letter.is_ascii_alphanumeric() || letter == b'-'
}

fn lower(name: &[u8]) -> Option<String> {
    String::from_utf8(name.to_ascii_lowercase()).ok()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::disallowed_methods)]
mod tests {
    use super::*;
    use std::process::Command;

    /// What git itself reads, key by key. `None` if it rejects the file.
    fn by_git(text: &str) -> Option<Vec<(String, String)>> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("config");
        std::fs::write(&file, text).unwrap();
        let list = ["config", "--null", "--list", "--file"];
        let done = Command::new("git").args(list).arg(&file).output().unwrap();
        let said = String::from_utf8(done.stdout).unwrap();
        let pairs = said.split('\0').filter(|it| !it.is_empty()).map(|it| {
            let (key, value) = it.split_once('\n').unwrap_or((it, "(true)"));
            (key.to_owned(), value.to_owned())
        });
        done.status.success().then(|| pairs.collect())
    }

    #[test]
    fn settings_are_read_as_git_reads_them() {
        for text in [
            "[core]\n\tbare = false\n\tfsmonitor = \"touch x; false\"\n",
            "[core] fsmonitor = a b  c   # comment\n[CORE]\nPager=\"a\\\"b\\\\c\" d ; x\n",
            "\u{feff}[a]\nb\n[a \"Q.\\\"x\"]\r\nc = d\\\n  e\r\nf=\\t1\\n2\n",
            "[Old.Style.Part]\nkey=1\n[x-1]y-2=z",
            "[core]\nx = \"a ; b\" ; c\n  y=  \n z = \"  q  \"  \n;c\n#d",
            "[core]\nfsmonitor\n= x\n",
            "[core]\nx = \"open\n",
            "[core\nx=1",
            "[core \"a\"\nx=1",
            "[core]\nx y=1",
            "[core]\n1x=1",
            "[core]\nx = a\\qb\n",
            "[a]x=1 [b]\ny=2",
            "[a]\n\tx = 1\r2 \r\n",
        ] {
            let read = read(text.as_bytes()).map(|settings| {
                let pair = |it: &Setting| (it.key(), it.value.clone().unwrap_or("(true)".into()));
                settings.iter().map(pair).collect::<Vec<_>>()
            });
            assert_eq!(read, by_git(text), "{text:?}");
        }
    }

    /// Pieces that mean something to git, combined at random, the same each time.
    #[test]
    fn whatever_git_reads_is_read_the_same_way() {
        const PIECES: [&str; 26] = [
            "[core]",
            "[a \"b\"]",
            "[A.b]",
            "[",
            "]",
            "\"",
            "\\",
            "\n",
            "\r\n",
            "\r",
            " ",
            "\t",
            "=",
            "key",
            "K-1",
            "fsmonitor = x",
            "url",
            ";",
            "#",
            "\\\n",
            "\\\"",
            "\\t",
            ".",
            "é",
            "1",
            "[a \"\\\"c\"]",
        ];
        let mut state = 1_u64;
        let mut next = |below: usize| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize % below
        };
        let mut understood = 0;
        for _ in 0..400 {
            let mut text = String::from(if next(4) == 0 { "" } else { "[core]\n" });
            (0..next(9)).for_each(|_| text += PIECES[next(PIECES.len())]);
            let theirs = by_git(&text);
            let ours = read(text.as_bytes()).map(|settings| {
                let pair = |it: &Setting| (it.key(), it.value.clone().unwrap_or("(true)".into()));
                settings.iter().map(pair).collect::<Vec<_>>()
            });
            // A file that we cannot parse is set aside as a whole.
            if let Some(ours) = ours {
                assert_eq!(theirs.unwrap_or_default(), ours, "{text:?}");
                understood += 1;
            }
        }
        assert!(understood > 40, "{understood}");
        assert_eq!(read(b"[remote \"o.uploadpack\0\"]\nfetch = evil\n"), None);
    }

    #[test]
    fn a_setting_is_where_its_range_says() {
        let text = "[core]\n\tbare = false\n\tfsmonitor = \"x \\\n y\"\n[a] b = c\n[d]\ne = f";
        let all = read(text.as_bytes()).unwrap();
        let cut: Vec<&str> = all.iter().map(|it| &text[it.range.clone()]).collect();
        assert_eq!(cut, ["bare = false\n", "fsmonitor = \"x \\\n y\"\n", "b = c\n", "e = f"]);
    }

    #[test]
    fn what_runs_a_program_or_names_a_file_is_not_harmless() {
        for text in [
            "[core]\nfsmonitor=x",
            "[core]\nhooksPath=.githooks",
            "[core]\nhooksPath=cat",
            "[core]\npager=less",
            "[core]\nsshCommand=x",
            "[core]\nworktree=/",
            "[core]\nattributesFile=x",
            "[core]\nprotectHFS=false",
            "[include]\npath=x",
            "[includeIf \"gitdir:/\"]\npath=x",
            "[filter \"a\"]\nclean=x",
            "[diff]\nexternal=x",
            "[diff \"a\"]\ntextconv=x",
            "[diff \"a\"]\nalgorithm=x",
            "[merge \"a\"]\ndriver=x",
            "[alias]\nst=!x",
            "[pager]\nstatus=x",
            "[gpg]\nprogram=x",
            "[gpg \"ssh\"]\ndefaultKeyCommand=x",
            "[credential]\nhelper=!x",
            "[remote \"o\"]\nuploadpack=x",
            "[remote \"o\"]\nurl=ext::sh -c x",
            "[branch \"b\"]\nremote=ext::sh -c x",
            "[branch \"b\"]\npushRemote=ext::sh -c x",
            "[remote]\npushDefault=ext::sh -c x",
            "[extensions]\npartialClone=ext::sh -c x",
            "[extensions]\npartialClone=origin",
            "[remote \"o\"]\npromisor=true",
            "[remote \"o\"]\nurl=ext://x",
            "[remote \"o\"]\nvcs=x",
            "[submodule \"o\"]\nupdate=!x",
            "[trailer \"a\"]\ncommand=x",
            "x=1",
        ] {
            assert!(!read(text.as_bytes()).unwrap()[0].is_harmless(), "{text}");
        }
        for text in [
            "[core]\nbare=true",
            "[core]\nhooksPath=/dev/null",
            "[core]\nfsmonitor=false",
            "[user]\nemail=a@b",
            "[remote \"o\"]\nurl=git@github.com:a/b.git",
            "[remote \"o\"]\nurl=https://github.com/a/b.git",
            "[remote \"o\"]\nfetch=+refs/heads/*:refs/remotes/o/*",
            "[branch \"m\"]\nmerge=refs/heads/m",
            "[extensions]\nobjectFormat=sha256",
            "[submodule \"a\"]\nurl=../a",
            "[commit]\ngpgsign",
        ] {
            assert!(read(text.as_bytes()).unwrap()[0].is_harmless(), "{text}");
        }
    }
}
