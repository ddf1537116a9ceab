//! What is known of programs: which of them run or write whatever their arguments say, and by which
//! options others do. A rule that names only a program must not become a rule for every program.
//!
//! The list is about mistakes and known ways around rules. It is no boundary: that is the
//! confinement of the process.

mod language;

use super::shell::Word;

/// What a rule must say of a program besides its name, before what it leaves open can be allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Open {
    /// Nothing.
    Freely,
    /// A word: its arguments say what is written where.
    Word,
    /// A word that is no option: what it is to run.
    Name,
    /// Everything: the rule has to be the whole command.
    Never,
}

struct Program {
    names: &'static [&'static str],
    open: Open,
    /// Options, and words, by which it runs or writes something that its other arguments do not
    /// show. Of long ones beginnings count, of short ones any letter of a group.
    options: &'static [&'static str],
}

const fn program(
    names: &'static [&'static str],
    open: Open,
    options: &'static [&'static str],
) -> Program {
    Program { names, open, options }
}

/// Commands of git that only look.
const LOOKING: [&str; 30] = [
    "status",
    "diff",
    "log",
    "show",
    "blame",
    "annotate",
    "shortlog",
    "describe",
    "rev-parse",
    "rev-list",
    "ls-files",
    "ls-tree",
    "cat-file",
    "merge-base",
    "name-rev",
    "grep",
    "whatchanged",
    "count-objects",
    "show-ref",
    "for-each-ref",
    "show-branch",
    "cherry",
    "diff-tree",
    "diff-index",
    "diff-files",
    "check-ignore",
    "check-attr",
    "range-diff",
    "version",
    "--version",
];

const PROGRAMS: [Program; 26] = [
    // Shells and languages: a script may be named, code may not be left open.
    program(
        &[
            "sh",
            "bash",
            "dash",
            "zsh",
            "ksh",
            "mksh",
            "fish",
            "csh",
            "tcsh",
            "ash",
            "busybox",
            "python",
            "python2",
            "python3",
            "pypy",
            "pypy3",
            "perl",
            "ruby",
            "irb",
            "node",
            "nodejs",
            "deno",
            "bun",
            "php",
            "lua",
            "luajit",
            "tclsh",
            "wish",
            "expect",
            "guile",
            "Rscript",
            "R",
            "julia",
            "swift",
            "scala",
            "groovy",
            "jshell",
            "java",
            "pwsh",
            "osascript",
            "ocaml",
            "npx",
            "bunx",
            "pnpx",
            "uvx",
            "pipx",
            "uv",
            "docker",
            "podman",
            "nerdctl",
            "kubectl",
            "helm",
            "ansible",
            "terraform",
        ],
        Open::Name,
        &[],
    ),
    // What runs its arguments, or its input.
    program(
        &[
            "env",
            "nice",
            "nohup",
            "timeout",
            "time",
            "stdbuf",
            "setsid",
            "ionice",
            "chrt",
            "taskset",
            "sudo",
            "doas",
            "su",
            "runuser",
            "setpriv",
            "chroot",
            "unshare",
            "nsenter",
            "bwrap",
            "xargs",
            "parallel",
            "script",
            "watch",
            "flock",
            "strace",
            "ltrace",
            "perf",
            "gdb",
            "lldb",
            "valgrind",
            "ssh",
            "mosh",
            "telnet",
            "nc",
            "ncat",
            "netcat",
            "socat",
            "tmux",
            "screen",
            "at",
            "batch",
            "crontab",
            "systemd-run",
            "dbus-run-session",
            "entr",
            "ld.so",
            "exec",
            "command",
            "builtin",
            "eval",
            "source",
            ".",
            "coproc",
            "trap",
            "alias",
            "unalias",
            "hash",
            "enable",
            "export",
            "declare",
            "typeset",
            "local",
            "readonly",
            "let",
            "read",
            "mapfile",
            "readarray",
            "getopts",
            "unset",
            "set",
            "shopt",
            "bind",
            "complete",
            "compgen",
            "compopt",
            "fc",
            "history",
            "jobs",
            "wait",
            "ed",
            "ex",
            "vi",
            "vim",
            "view",
            "vimdiff",
            "nvim",
            "emacs",
            "nano",
            "pico",
            "less",
            "more",
            "most",
            "man",
            "info",
            "ftp",
            "sftp",
            "gcc",
            "cc",
            "g++",
            "c++",
            "clang",
            "ld",
            "as",
            "if",
            "for",
            "while",
            "[[",
        ],
        Open::Never,
        &[],
    ),
    // What writes where its arguments say.
    program(
        &[
            "cp", "mv", "dd", "install", "ln", "tee", "rm", "rmdir", "truncate", "shred", "chmod",
            "chown", "chgrp", "patch", "split", "csplit", "cpio", "unzip", "zip", "7z", "ar",
            "mknod", "mkfifo", "gzip", "gunzip", "bzip2", "bunzip2", "xz", "unxz", "zstd", "scp",
            "objcopy", "ex", "sponge", "xxd", "pax",
        ],
        Open::Word,
        &["--rsh", "--use-compress-program"],
    ),
    program(
        &["tar", "bsdtar", "gtar"],
        Open::Word,
        &[
            "-I",
            "-F",
            "--use-compress-program",
            "--to-command",
            "--checkpoint-action",
            "--info-script",
            "--new-volume-script",
            "--rsh-command",
            "--rmt-command",
        ],
    ),
    program(&["rsync"], Open::Word, &["-e", "--rsh", "--rsync-path"]),
    program(&["sed"], Open::Freely, &[]),
    program(&["awk", "gawk", "mawk", "nawk"], Open::Freely, &[]),
    program(
        &["find"],
        Open::Freely,
        &[
            "=-exec",
            "=-execdir",
            "=-ok",
            "=-okdir",
            "=-delete",
            "=-fprint",
            "=-fprint0",
            "=-fprintf",
            "=-fls",
        ],
    ),
    program(&["fd", "fdfind"], Open::Freely, &["-x", "-X", "--exec", "--exec-batch"]),
    program(&["rg"], Open::Freely, &["--pre", "--hostname-bin", "--search-zip", "-z"]),
    program(&["ag", "ack"], Open::Freely, &["--pager"]),
    program(&["sort"], Open::Freely, &["-o", "-T", "--output", "--compress-program"]),
    program(&["uniq", "shuf"], Open::Freely, &["-o", "--output"]),
    program(&["tree"], Open::Freely, &["-o", "-R"]),
    program(&["printf"], Open::Freely, &["-v"]),
    program(&["test", "["], Open::Freely, &["=-v", "=-R"]),
    program(&["date", "hostname"], Open::Freely, &["-s", "--set", "-F", "-b"]),
    program(&["diff", "sdiff"], Open::Freely, &["-o", "--output", "--diff-program"]),
    program(&["file"], Open::Freely, &["-C", "--compile", "-z", "-Z", "--uncompress"]),
    program(&["bat", "batcat"], Open::Freely, &["--pager"]),
    program(
        &["make", "gmake"],
        Open::Freely,
        &["-f", "-C", "-I", "-E", "--file", "--makefile", "--directory", "--eval", "--include-dir"],
    ),
    program(
        &["cargo"],
        Open::Freely,
        &[
            "-Z",
            "-C",
            "--config",
            "--manifest-path",
            "--target-dir",
            "--out-dir",
            "--artifact-dir",
            "=rustc",
            "=install",
            "=rustdoc",
        ],
    ),
    program(
        &["npm", "pnpm", "yarn"],
        Open::Freely,
        &[
            "-C",
            "-c",
            "--call",
            "--prefix",
            "--dir",
            "--cwd",
            "--script-shell",
            "--node-options",
            "--userconfig",
            "--globalconfig",
            "--shell-mode",
            "=exec",
            "=x",
            "=dlx",
            "=explore",
            "=init",
            "=create",
            "=config",
            "=set",
            "=edit",
            "=node",
        ],
    ),
    program(
        &["curl", "wget"],
        Open::Freely,
        &[
            "-o",
            "-O",
            "-K",
            "-T",
            "-D",
            "-c",
            "-J",
            "-P",
            "-i",
            "-e",
            "-a",
            "-E",
            "--output",
            "--remote-name",
            "--config",
            "--upload-file",
            "--dump-header",
            "--cookie-jar",
            "--trace",
            "--stderr",
            "--libcurl",
            "--execute",
            "--use-askpass",
            "--directory-prefix",
            "--input-file",
            "--append-output",
            "--engine",
            "--proto-redir",
            "--hsts",
            "--alt-svc",
        ],
    ),
    program(
        &["go"],
        Open::Freely,
        &[
            "-C",
            "-o",
            "-exec",
            "-toolexec",
            "-overlay",
            "-vettool",
            "=generate",
            "=env",
            "=install",
        ],
    ),
    program(&["git"], Open::Freely, &[]),
];

/// Options of git's commands by which it runs or writes something else.
const GIT: [&str; 14] = [
    "--output",
    "--output-directory",
    "--ext-diff",
    "--open-files-in-pager",
    "--upload-pack",
    "--receive-pack",
    "--exec",
    "--extcmd",
    "--exec-path",
    "--template",
    "--config",
    "--upload-archive",
    "--textconv",
    "--filters",
];

/// Short ones, by command.
const GIT_SHORT: [(&str, &str); 8] = [
    ("grep", "O"),
    ("archive", "o"),
    ("format-patch", "o"),
    ("difftool", "xt"),
    ("mergetool", "t"),
    ("rebase", "x"),
    ("clone", "cu"),
    ("submodule", ""),
];

/// Why a rule that spells out the first `said` of `words` (the program included) and leaves the rest
/// open cannot allow them, if it cannot.
pub(crate) fn leaves_too_much_open(words: &[Word], said: usize) -> Option<String> {
    let name = words.first()?.exact()?;
    let known = find(name);
    let open = known.map_or(Open::Freely, |program| program.open);
    let spelled = &words[1.min(words.len())..said.min(words.len())];
    let is_option = |word: &Word| word.exact().is_none_or(|text| text.starts_with('-'));
    let enough = match open {
        Open::Freely => true,
        Open::Word => !spelled.is_empty(),
        Open::Name => spelled.iter().any(|word| !is_option(word)),
        Open::Never => false,
    };
    if !enough {
        return Some(match open {
            Open::Word => format!("it leaves open what `{name}` writes and where"),
            _ => format!("it leaves open what `{name}` runs"),
        });
    }
    let rest = &words[said.min(words.len())..];
    runs_by(words, rest).map(|what| format!("{what} is left open by it"))
}

/// What among the arguments of a command makes it run, or write, something else.
fn runs_by(words: &[Word], rest: &[Word]) -> Option<String> {
    let name = words.first()?.exact()?;
    let quoted = |text: &str| format!("`{}`", text.chars().take(60).collect::<String>());
    let known = find(name)?;
    match known.names {
        ["git"] => return git(words, rest),
        ["sed"] => return language::sed(rest).map(str::to_owned),
        ["awk", ..] => return language::awk(rest).map(str::to_owned),
        ["make", ..] => {
            let assigns = |word: &&Word| word.exact().is_none_or(|text| text.contains('='));
            if rest.iter().any(|word| assigns(&word)) {
                return Some("a variable for `make`".to_owned());
            }
        }
        _ => {}
    }
    for word in rest {
        let text = match word {
            Word::Exact(text) if text == "--" => break,
            Word::Exact(text) => text,
            Word::Begins(_) | Word::Unknown => continue,
        };
        if let Some(option) = known.options.iter().find(|option| is_meant(option, text)) {
            return Some(quoted(option.trim_start_matches('=')));
        }
    }
    None
}

/// True when the argument `text` is `option`, or may be.
fn is_meant(option: &str, text: &str) -> bool {
    if let Some(exactly) = option.strip_prefix('=') {
        return exactly == text;
    }
    match (option.strip_prefix("--"), text.strip_prefix("--")) {
        (Some(long), Some(given)) => {
            let given = given.split('=').next().unwrap_or_default();
            !given.is_empty() && long.starts_with(given)
        }
        (None, None) if option.len() == 2 => {
            let letter = option.as_bytes()[1];
            text.starts_with('-') && text.as_bytes()[1..].contains(&letter)
        }
        (None, None) => text.split('=').next() == Some(option),
        // Some programs take their long options with one dash too.
        (None, Some(given)) if option.len() > 2 => {
            given.split('=').next() == option.strip_prefix('-')
        }
        _ => false,
    }
}

fn git(words: &[Word], rest: &[Word]) -> Option<String> {
    let command = words.get(1).and_then(Word::exact);
    let left_open = rest.len() == words.len() - 1;
    let Some(command) = command else {
        return left_open.then(|| "which command of git".to_owned()).filter(|_| words.len() > 1);
    };
    if left_open && !LOOKING.contains(&command) {
        return Some(format!("`git {command}`, which may do more than look,"));
    }
    let short = GIT_SHORT.iter().find(|(known, _)| *known == command).map_or("", |(_, it)| *it);
    for word in rest {
        let Some(text) = word.exact() else { continue };
        if text == "--" {
            break;
        }
        let long = GIT.iter().any(|option| is_meant(option, text));
        let cluster = text.starts_with('-') && !text.starts_with("--");
        let letter = cluster && text.chars().skip(1).any(|letter| short.contains(letter));
        // `ext::` and its like name a program to talk to.
        let transport = text.contains("::") || text.contains("://-");
        if long || letter || transport {
            return Some(format!("`{}`", text.chars().take(60).collect::<String>()));
        }
    }
    let says =
        |wanted: &[&str]| rest.iter().filter_map(Word::exact).any(|text| wanted.contains(&text));
    match command {
        "config"
            if !says(&["--get", "--get-all", "--get-regexp", "--list", "-l", "get", "list"]) =>
        {
            Some("a setting of git".to_owned())
        }
        "bisect" if says(&["run", "visualize", "view"]) => Some("`run`".to_owned()),
        "submodule" if says(&["foreach"]) => Some("`foreach`".to_owned()),
        "filter-branch" | "difftool" | "mergetool" | "hook" | "instaweb" | "daemon"
            if !rest.is_empty() =>
        {
            Some(format!("what `git {command}` runs"))
        }
        _ => None,
    }
}

/// What a command may run that is not shown as its program.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Runs {
    /// Nothing else that is known of.
    Itself,
    /// One of its arguments is the program, with those after it; or a text that is a command.
    Arguments,
    /// Something that cannot be told.
    Anything,
}

/// What the command `words` may run.
pub(crate) fn runs(words: &[Word]) -> Runs {
    let Some(name) = words.first().and_then(Word::exact) else { return Runs::Anything };
    let name = base(name);
    let Some(known) = find(name) else {
        return match name.starts_with("ld-linux") || name.starts_with("ld-musl") {
            true => Runs::Arguments,
            false => Runs::Itself,
        };
    };
    match (known.open, known.names) {
        (Open::Never, _) | (_, ["find"] | ["fd", ..] | ["tar", ..] | ["rsync"]) => Runs::Arguments,
        (Open::Name, _) => {
            let inline = |word: &Word| match word {
                Word::Exact(text) => {
                    text.starts_with('-')
                        && !text.starts_with("--")
                        && text.contains(['c', 'e', 'E'])
                        || ["--eval", "--command", "--exec", "--print"].contains(&text.as_str())
                }
                Word::Begins(_) | Word::Unknown => true,
            };
            let shell =
                name.ends_with("sh") || matches!(name, "busybox" | "docker" | "podman" | "kubectl");
            match (shell, words[1..].iter().any(inline)) {
                (true, _) => Runs::Arguments,
                (false, true) => Runs::Anything,
                (false, false) => Runs::Itself,
            }
        }
        _ => match runs_by(words, &words[1..]) {
            Some(_) if known.names == ["git"] && !git_runs(words) => Runs::Itself,
            Some(_) => Runs::Anything,
            None => Runs::Itself,
        },
    }
}

/// True when git is told to run something, and not only to do what it does.
fn git_runs(words: &[Word]) -> bool {
    let Some(command) = words.get(1).and_then(Word::exact) else { return true };
    // With options before its command, it is another git.
    command.starts_with('-') && command != "--no-pager" && command != "-C"
        || git(words, &words[2..]).is_some()
}

/// The program that `name` is known as.
fn find(name: &str) -> Option<&'static Program> {
    let found = PROGRAMS.iter().find(|program| program.names.contains(&name));
    found.or_else(|| {
        // `python3.12`, `perl5.36`.
        let plain = name.trim_end_matches(|char: char| char.is_ascii_digit() || char == '.');
        let versions = ["python", "perl", "ruby", "lua", "node", "php"];
        let known = versions.contains(&plain).then_some(plain)?;
        PROGRAMS.iter().find(|program| program.names.contains(&known))
    })
}

/// The last part of a path.
pub(crate) fn base(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or(name)
}
