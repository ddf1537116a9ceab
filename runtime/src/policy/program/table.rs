//! The table of programs: their names, what a rule must spell out, and the options that make them run or write
//! something that their other arguments do not show.

use super::Open;
use std::collections::HashMap;
use std::sync::LazyLock;

/// A known program.
pub(super) struct Program {
    /// The first of its names.
    pub(super) name: &'static str,
    pub(super) open: Open,
    /// Long options may be abbreviated; a short option may be in a group. With `=` before it, a word must match
    /// exactly. With `>` before it, an option only says where something is or is written.
    pub(super) options: Vec<&'static str>,
}

/// Names of similar programs, what a rule must spell out for them, and their options.
const PROGRAMS: [(&str, Open, &str); 42] = [
    // Shells and languages: a rule may name a script, but not leave code open. Without either, they obey their input.
    ("sh bash rbash dash zsh ksh mksh lksh yash posh fish csh tcsh ash", Open::Name, ""),
    (
        "python python2 python3 pypy pypy3 perl ruby irb node nodejs deno bun php lua luajit \
         tclsh wish expect guile Rscript R julia swift groovy jshell pwsh osascript ocaml",
        Open::Name,
        "",
    ),
    // The same, but they do not read their input.
    (
        "java scala helm terraform",
        Open::Name,
        "=-e --post-renderer -XX:OnError -XX:OnOutOfMemoryError",
    ),
    ("busybox toybox npx bunx pnpx uvx pipx uv ansible", Open::Name, ""),
    ("docker podman nerdctl kubectl", Open::Name, "--kubeconfig --config"),
    // Programs with their own language, which can run other programs.
    (
        "gdb lldb ed ex vi vim view vimdiff nvim emacs m4 dc sqlite3 psql mysql mariadb gnuplot \
         octave at batch crontab ftp sftp telnet socat parallel",
        Open::Never,
        "",
    ),
    // Programs that run their arguments, or their input.
    (
        "env nice nohup timeout time stdbuf setsid ionice chrt taskset sudo doas su \
         runuser setpriv chroot unshare nsenter bwrap xargs script watch flock strace ltrace \
         perf valgrind ssh mosh nc ncat netcat tmux screen systemd-run dbus-run-session entr \
         prlimit choom setarch linux32 linux64 x86_64 i386 i486 i586 i686 uname26 numactl fakeroot rlwrap pkexec sg run-parts \
         chronic eatmydata sccache ccache distcc faketime torsocks tsocks proxychains proxychains4 \
         cpulimit cgexec trickle catchsegv cross-env dotenv caffeinate gosu su-exec tini dumb-init \
         unbuffer start-stop-daemon ssh-agent capsh firejail proot hyperfine xvfb-run ld.so dpkg-architecture uclampset logsave pipesz coresched debconf exec command builtin eval source \
         . coproc trap alias unalias hash enable export declare typeset local readonly let \
         read mapfile readarray getopts unset set shopt bind complete compgen compopt fc \
         history jobs wait nano pico less more most man info if then else elif do for while until case select \
         function [[",
        Open::Never,
        "",
    ),
    ("gcc cc g++ c++ clang clang++ ld as", Open::Never, "-wrapper -specs --specs"),
    // Programs that write where their arguments say.
    (
        "cp mv dd install ln tee rm rmdir truncate shred chmod chown chgrp patch split \
         csplit cpio unzip 7z ar mknod mkfifo gzip gunzip bzip2 bunzip2 xz unxz zstd objcopy \
         sponge xxd pax",
        Open::Word,
        "--rsh --rsh-command --use-compress-program --filter --strip-program --plugin",
    ),
    ("zip", Open::Word, "-T --test --unzip-command"),
    ("scp", Open::Word, "-S -o -F -D"),
    (
        "tar bsdtar gtar",
        Open::Word,
        "-I -F --use-compress-program --to-command --checkpoint-action --info-script \
         --new-volume-script --rsh-command --rmt-command",
    ),
    ("rsync", Open::Word, "-e --rsh --rsync-path"),
    ("sed", Open::Freely, ""),
    ("awk gawk mawk nawk", Open::Freely, ""),
    (
        "find",
        Open::Freely,
        "=-exec =-execdir =-ok =-okdir =-delete =-fprint =-fprint0 =-fprintf =-fls",
    ),
    ("fd fdfind", Open::Freely, "-x -X --exec --exec-batch"),
    ("dpkg", Open::Plainly, "--pre-invoke --post-invoke --status-logger"),
    ("rg", Open::Freely, "--pre --hostname-bin --search-zip -z"),
    ("ag ack", Open::Freely, "--pager"),
    ("sort", Open::Freely, ">-o >-T >--output --compress-program >--temporary-directory"),
    ("uniq", Open::Freely, ""),
    ("shuf", Open::Freely, ">-o >--output"),
    ("yq", Open::Freely, ">-i >-s >--inplace >--split-exp"),
    ("tree", Open::Freely, ">-o >-R"),
    ("printf", Open::Freely, "-v"),
    ("test [", Open::Freely, "=-v =-R"),
    ("prove", Open::Freely, "-e --exec"),
    // Without an option, `date TIME` sets the clock, and `hostname NAME` the name of the machine.
    ("date", Open::Freely, ">-s >--set"),
    ("hostname", Open::Freely, ">-F >-b >--file >--boot"),
    ("diff sdiff", Open::Freely, ">-o >--output --diff-program -l --paginate"),
    ("file", Open::Freely, "-C --compile -z -Z --uncompress"),
    ("bat batcat", Open::Freely, "--pager"),
    (
        "make gmake",
        Open::Freely,
        ">-f >-C -I -E >--file >--makefile >--directory --eval --include-dir",
    ),
    (
        "cargo",
        Open::Freely,
        "-Z >-C --config >--manifest-path >--target-dir >--out-dir >--artifact-dir =rustc \
         >=install =rustdoc",
    ),
    (
        "npm pnpm yarn",
        Open::Freely,
        ">-C -c --call >--prefix >--dir >--cwd --script-shell --node-options --userconfig \
         --globalconfig --shell-mode --shell --git --viewer --editor --browser --init-module \
         --onload-script --python --registry --pnpmfile --global-pnpmfile --use-yarnrc =exec =x =dlx =explore >=init =create =config =set \
         =edit =node",
    ),
    (
        "curl wget",
        Open::Freely,
        ">-o >-O -K >-T >-D >-c >-J >-P >-i -e >-a -E >--output >--remote-name --config \
         >--upload-file >--dump-header >--cookie-jar >--trace >--stderr >--libcurl \
         --execute --use-askpass >--directory-prefix >--input-file >--append-output \
         --engine --proto-redir >--hsts >--alt-svc >--trace-ascii >--etag-save \
         >--output-dir >--remote-name-all >--output-document >--output-file \
         >--save-cookies >--warc-file >--rejected-log >--hsts-file >--ssl-sessions",
    ),
    (
        "go",
        Open::Freely,
        "-C -o -exec -toolexec -overlay -vettool -compiler =generate =env =install",
    ),
    ("git", Open::Freely, ""),
    // Programs that only print, with any options.
    (
        "ls dir vdir cat tac head tail wc grep egrep fgrep zgrep cut tr nl paste join comm column fold \
         fmt rev echo pwd true false basename dirname realpath readlink stat du df ps pgrep id whoami \
         who groups uname uptime arch nproc free which whereis seq sleep expr factor jq cmp md5sum \
         sha1sum sha224sum sha256sum sha384sum sha512sum b2sum cksum sum od hexdump hd base64 base32 \
         numfmt tsort getconf printenv locale tty lsof lsblk tokei exa eza type cal",
        Open::Freely,
        "",
    ),
    // Programs that only make files and folders where their arguments say.
    ("touch mkdir mktemp", Open::Freely, ""),
    // Programs that check, test or format a project run its code anyway, with any options.
    (
        "pytest py.test mypy ruff black isort flake8 pylint tsc eslint prettier jest vitest mocha \
         rustfmt gofmt goimports shellcheck hadolint yamllint",
        Open::Freely,
        "",
    ),
];

/// Subcommands of git that only read.
pub(crate) const LOOKING: &str = "status diff log show blame annotate shortlog describe rev-parse rev-list ls-files \
     ls-tree cat-file merge-base name-rev grep whatchanged count-objects show-ref \
     for-each-ref show-branch cherry diff-tree diff-index diff-files check-ignore \
     check-attr range-diff version --version";

/// Options of git subcommands that run or write something else.
pub(super) const GIT: &str = "--output --output-directory --ext-diff --open-files-in-pager --upload-pack \
     --receive-pack --exec --extcmd --exec-path --template --config --upload-archive \
     --textconv --show-signature --filters --sendmail-cmd --to-cmd --cc-cmd --header-cmd";

/// Short options, by subcommand.
pub(super) const GIT_SHORT: [(&str, &str); 7] = [
    ("grep", "O"),
    ("archive", "o"),
    ("format-patch", "o"),
    ("difftool", "xt"),
    ("mergetool", "t"),
    ("rebase", "x"),
    ("clone", "cu"),
];

static KNOWN: LazyLock<HashMap<&'static str, Program>> = LazyLock::new(|| {
    let mut known = HashMap::new();
    for (names, open, options) in PROGRAMS {
        let first = names.split(' ').next().unwrap_or_default();
        for name in names.split(' ') {
            let options = options.split(' ').filter(|option| !option.is_empty()).collect();
            known.entry(name).or_insert(Program { name: first, open, options });
        }
    }
    known
});

/// Returns the program that `name` is known as.
pub(super) fn find(name: &str) -> Option<&'static Program> {
    // In any folder.
    let name = name.rsplit('/').next().unwrap_or_default();
    KNOWN.get(name).or_else(|| {
        // `python3.12`, `perl5.36`, `gcc-12`.
        KNOWN.get(name.trim_end_matches(|it: char| it.is_ascii_digit() || it == '.' || it == '-'))
    })
}

/// True when the table has exactly this name.
pub(super) fn is_listed(name: &str) -> bool {
    KNOWN.contains_key(name)
}
