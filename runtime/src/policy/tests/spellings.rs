//! Ways to write a command so that the shell, or a program, reads it in another way than Posse might.
#![allow(clippy::disallowed_methods, reason = "bash itself is what the parser is held against")]

use super::*;
use proptest::prelude::*;
use std::process::{Command, Stdio};

/// Checks that no command passes a denial of `touch`, attended or not.
#[track_caller]
pub(super) fn found(commands: &[&str]) {
    let passes = |command: &&&str| {
        let case = || Case::new().mode(Mode::Bypass).deny(&["Bash(touch:*)"]);
        kind(&case().bash(command)) != Kind::Deny
            || kind(&case().attended().bash(command)) == Kind::Allow
    };
    let passed: Vec<_> = commands.iter().filter(passes).collect();
    assert!(passed.is_empty(), "{passed:#?}");
}

/// Checks that commands run beside a denial of `touch`.
#[track_caller]
pub(super) fn runs(commands: &[&str]) {
    for command in commands {
        let ruling = Case::new().mode(Mode::Bypass).deny(&["Bash(touch:*)"]).bash(command);
        assert_eq!(kind(&ruling), Kind::Allow, "{command}: {ruling:?}");
    }
}

#[test]
fn lines_are_joined_before_anything_is_read() {
    let commands = [
        "ls \"$\\\n(touch c)\"",
        "echo $\\\n'a\\' '; touch c #'",
        "echo x$\\\n'a\\' '; touch c #'",
        "git diff \"$\\\n(touch c)\"",
        "git log --format=\"$\\\n(touch c)\"",
        "grep x \"$\\\n{x:-$\\\n(touch c)}\" a",
        "echo \"$\\\n((a[$\\\n(touch c)]))\"",
        "echo \"$\\\n[a[$\\\n(touch c)]]\"",
        "echo \"$\\\n\\\n(touch c)\"",
        "echo \"${x:-$\\\n(touch c)}\"",
        "echo ${x:-\"$\\\n(touch c)\"}",
        "echo \"`echo \\\"$\\\n(touch c)\\\"`\"",
        "echo `echo 'a\\\n'; tou\\\nch c`",
        "echo \"$(echo \"$\\\n(touch c)\")\"",
        "cat <<E\n$\\\n(touch c)\nE",
        "cat <<E\n`echo;tou\\\nch c`\nE",
        "cat <<< \"$\\\n(touch c)\"",
        "case \"$\\\n(touch c)\" in x) ;; esac",
        "[[ \"$\\\n(touch c)\" ]]",
        "for i in \"$\\\n(touch c)\"; do :; done",
        "x=\"$\\\n(touch c)\"",
        "x=echo; xy=touch; $x\\\ny c",
        "x=echo; xy=touch; \"$x\\\ny\" c",
        "(\\\n('a[$(touch c)]'))",
        "echo $(\\\n('a[$(touch c)]'))",
        "ls &\\\n& touch c",
        "ls |\\\n| touch c",
        "cat <\\\n(touch c)",
        "cat <\\\n<E\n$(touch c)\nE",
        "to\\\nuch c",
        "ls # a\\\ntouch c",
        "ls # a\\\n\\\ntouch c",
        "ls # a \\\n b $\\\n(\ntouch c",
        "ls #\\\ntouch c",
        "ls 'a\\\n'; touch c",
        "ls 'a\\\n' # \\\ntouch c",
        "cat <<'E'\na\\\nE\ntouch c",
        "cat <<'E'\nE\\\n\nE\ntouch c",
        "cat <<'E' <<F\n\\\nE\n\\\nF\ntouch c",
        "ls \\\\\ntouch c",
        "ls 'a'\\''\\\n'; touch c #'",
        "bash -c 'ls \"$\\\n(touch c)\"'",
        "eval 'to\\\nuch c'",
    ];
    found(&commands);
    // No rule for another program allows them, either.
    let rules = ["Bash(ls:*)", "Bash(echo:*)", "Bash(git:*)", "Bash(grep:*)", "Bash(cat:*)"];
    for command in commands {
        let ruling = Case::new().allow(&rules).bash(command);
        assert_eq!(kind(&ruling), Kind::Deny, "{command}");
        let ruling = Case::new().allow(&rules).attended().bash(command);
        assert_eq!(kind(&ruling), Kind::Ask, "{command}");
        let ruling = Case::new().scope(&rules).mode(Mode::Bypass).bash(command);
        assert_eq!(kind(&ruling), Kind::Deny, "{command}");
    }
}

#[test]
fn ordinary_commands_of_several_lines_are_understood() {
    runs(&[
        "cargo test \\\n  --workspace \\\n  --locked",
        "ls &&\\\necho b ||\\\necho c |\\\nwc",
        "ls && \\\n  echo b",
        "curl -sS \\\n  -H 'A: b' \\\n  https://example.org",
        "sed -i '/x/a\\\ntext' f",
        "sed 's/a/b\\\nc/' f",
        "cat > x.c <<'EOF'\n#define A(b) \\\n  do { b; } while (0)\n#define C \\\nD\nEOF\nls",
        "cat <<EOF\nRUN a && \\\n    b\nEOF\nls",
        "ls # it ends here \\\necho b",
        "git commit -m \"$(cat <<'EOF'\nFix the parser\n\nIt (also) reads \\\nlines.\nEOF\n)\"",
        "(cat <<E\nx)\nE\n)",
        "a=(1 2) && echo \"${a[@]}\"; b=(3); (c=(4)) | cat",
        "declare -a a=(\n  1 \\\n  2\n)\necho \"${a[0]}\"",
        "for x in a \\\n  b; do echo \"$x\"; done",
        "n=$((1 + \\\n  2)); echo \"$n\"",
    ]);
    let case = Case::new().allow(&["Bash(echo:*)", "Bash(grep:*)"]);
    for command in
        ["echo a \\\n  b", "echo a &&\\\necho b", "grep 'a\\\nb' f", "ec\\\nho \"a\\\nb\""]
    {
        check(&case.bash(command), Kind::Allow);
    }
}

/// Each text that is read again counts once, however deep it is.
#[test]
fn a_command_with_very_many_kept_lines_is_judged() {
    let quoted = |backslashes: usize| format!("'{}\n' ", "\\".repeat(backslashes)).repeat(70);
    runs(&[&format!("ls {}", "'a\\\n' ".repeat(40))]);
    let deep = format!(
        "ls `ls \\`ls \\\\\\`ls {}\\\\\\` {}\\` {}` {}",
        quoted(8),
        quoted(4),
        quoted(2),
        quoted(1)
    );
    found(&[&format!("ls {}; touch c", quoted(1)), &format!("{deep}; touch c")]);
}

#[test]
fn a_command_behind_the_end_of_a_document_or_an_array_is_found() {
    found(&[
        "cat <<E\nE\\\n\ntouch c\nE",
        "cat <<EOF\nEO\\\nF\ntouch c\nEOF",
        "cat <<-E\n\tE\\\n\n\ttouch c\n\tE",
        "cat <<E\nx\\\\\nE\ntouch c",
        "echo $(cat <<E\nE touch c)\nE\n)",
        "echo $(cat <<'E'\nE touch c)\nE\n)",
        "cat <(cat <<E\nE touch c)\nE\n)",
        "echo $(cat <<-E\n\tE touch c)\nE\n)",
        "a=(1)#x; touch c",
        "a=()#; touch c",
        "a+=(1)#x; touch c",
        "declare a=(1)#x; touch c",
        "export a=(1)#b; touch c",
        "a=(1)\\\n#x; touch c",
    ]);
}

#[test]
fn code_behind_the_options_of_a_shell_is_found() {
    found(&[
        "bash -c + 'touch c'",
        "sh -c + 'touch c'",
        "dash -c + 'touch c'",
        "bash + -c 'touch c'",
        "bash -c + + 'touch c'",
        "bash -c +- 'touch c'",
        "bash -eoc pipefail 'touch c'",
        "bash -euoc pipefail 'touch c'",
        "bash +oc posix 'touch c'",
        "bash -oO posix extglob -c 'touch c'",
        "bash -oo pipefail posix -c 'touch c'",
        "bash -ooc pipefail posix 'touch c'",
        "bash -ocO posix extglob 'touch c'",
        "bash -o posix -oc pipefail 'touch c'",
        "bash -c -oo posix pipefail 'touch c'",
        "bash -rcfile x -c 'touch c'",
        "bash -norc -c 'touch c'",
        "fish '-ctouch c'",
        "fish --command 'touch c'",
        "fish --comm='touch c'",
        "zsh -oc 'touch c'",
    ]);
    runs(&[
        "bash -c 'ls x'",
        "bash -euo pipefail -c 'ls x'",
        "bash -lc 'ls x'",
        "bash --norc -ec 'ls x'",
        "sh -ec 'ls x'",
        "bash +x a.sh",
        "zsh -lc 'ls x'",
        "fish -c 'ls x'",
    ]);
}

#[test]
fn a_call_of_a_function_that_is_not_written_out_is_found() {
    found(&[
        "f(){ \"$@\"; }; eval 'f touch c'",
        "f(){ \"$@\"; }; eval f touch c",
        "f(){ \"$@\"; }; eval -- 'f touch c'",
        "f(){ \"$1\" c; }; eval 'f touch'",
        "f(){ \"$@\"; }; command eval 'f touch c'",
        "f(){ \"$@\"; }; eval 'eval \"f touch c\"'",
        "f(){ \"$@\"; }; f eval 'f touch c'",
        "f(){ \"$@\"; }; export -f f; bash -c 'f touch c'",
        "f(){ \"$@\"; }; declare -fx f; bash -c 'f touch c'",
        "set -a; f(){ \"$@\"; }; bash -c 'f touch c'",
        "set -o allexport; f(){ \"$@\"; }; bash -c 'f touch c'",
        "f(){ \"$@\"; }; export -f f; echo c | xargs -I{} bash -c 'f touch {}'",
        "f(){ \"$@\"; }; y='f touch c'; $y",
        "f(){ \"$@\"; }; y=f; $y touch c",
        "f(){ \"$@\"; }; y=f; \"$y\" touch c",
        "y='set -- touch c'; $y; \"$@\"",
        "f(){ \"$@\"; }; trap 'f touch c' EXIT",
        "f(){ \"$@\"; }; trap -- 'f touch c' EXIT",
        "f(){ \"$@\"; }; shopt -s expand_aliases\nalias g='f touch c'\ng",
        "f(){ \"$@\"; }; compgen -F f touch",
        "f(){ \"$@\" touch c; }; f f",
        "command_not_found_handle(){ shift; \"$@\"; }; nope touch c",
        "command_not_found_handle(){ ls; }; nope touch c",
    ]);
}

#[test]
fn a_value_that_a_failed_declaration_leaves_is_found() {
    found(&[
        "export y; read y < <(echo touch); bash -c 'local y=ls; $y c'",
        "export y; read y < <(echo touch); bash -c 'readonly y; declare y=ls; $y c'",
        "export y; read y < <(echo touch); bash -c 'declare -p y=ls; $y c'",
        "export y; read y < <(echo touch); bash -c 'declare -f y=ls; $y c'",
        "local y=ls; $y c",
        "declare -p y=ls; $y c",
    ]);
    runs(&["bash -c 'y=ls; $y c'", "f() { local y=ls; $y c; }; f", "declare y=ls; $y c"]);
}

#[test]
fn a_program_that_another_runs_in_an_unusual_way_is_found() {
    found(&[
        "env '-Stouch\\_c'",
        "env '-iStouch\\vc'",
        "env -u X '-Stouch\\_c'",
        "env -vS'touch\\tc'",
        "env --split-string='touch\\_c'",
        "env --spl='touch\\_c'",
        "env -- A=b touch c",
        "sudo -- A=b touch c",
        "/usr/bin/env '-Stouch\\_c'",
        "compgen -W '$(touch${IFS}c)'",
        "compgen -W\"\\$(touch\\${IFS}c)\"",
        "compgen -C 'touch c;:' x",
        "compgen \"$x\" y",
        "flock a -c 'touch${IFS}c'",
        "flock a -c'touch${IFS}c'",
        "flock a --command 'touch${IFS}c'",
        "flock a -c 'ls;touch'",
        "x='b[$(touch c)]'; exec {a[x]}>/dev/null",
        "x='b[$(touch c)]'; : {a[x]}>/dev/null",
        "x='b[$(touch c)]'; { :; } {a[x]}>/dev/null",
        "exec {IFS}>/dev/null; x=touch1c; $x",
        "exec {x}>/dev/null; x=ls; exec {x}>&-; \"$x\" touch c",
        "printf 'x:\\n\\ttouch c\\n' | MAKEFILES=/dev/stdin make x",
        "export MAKEFILES=x.mk; make",
        "MAKEFLAGS='E x:;touch' make",
        "MAKEFLAGS='--eval=$(shell\\ touch\\ c)' make",
        "GNUMAKEFLAGS='-E $(shell\\ touch\\ c)' make",
        "shopt -s expand_aliases\nalias which='echo touch c'\n$(which ls)",
        "shopt -s expand_aliases\nalias nproc='echo touch c'\n$(nproc)",
        "shopt -s expand_aliases\neval \"alias which='echo touch c'\"\n$(which ls)",
        "git remote-ext x 'touch c' <<< 'connect x'",
        "git-remote-ext x 'touch c' <<< 'connect x'",
        "git -c color.ui=false remote-ext x 'touch c'",
        "git submodule--helper foreach 'touch c'",
        "git for-each-repo --config=a -c alias.x='!touch c' x",
        "git merge-index touch -a",
        "mise exec node@20 -- touch c",
        "mise x node -- touch c",
        "mise exec -c 'touch c'",
        "mise exec -- touch c",
        "cmake -E env A=b touch c",
        "cmake -E env --unset=A touch c",
        "cmake -E env touch c",
        "cmake -E chdir . touch c",
        "cmake -E time touch c",
        "hatch run x:touch c",
        "hatch run touch c",
        "dpkg-architecture -c touch c",
        "dpkg-architecture -c 'touch c'",
        "logsave /dev/null touch c",
        "docker-compose exec x touch c",
        "docker container exec x touch c",
        "docker container run x touch c",
    ]);
    runs(&[
        "env A=b ls x",
        "env -- A=b ls x",
        "env -i ls x",
        "env",
        "flock lock ls x",
        "flock lock -c 'ls x'",
        "exec {fd}>lock; echo \"$fd\"; flock 9",
        "MAKEFLAGS=-j4 make",
        "MAKEFLAGS=j4 make",
        "alias ll='ls -la'",
        "mise exec node@20 -- npm test",
        "cmake -E make_directory build",
        "cmake -E touch x",
        "cmake -E env A=b ctest",
        "cmake -B build && cmake --build build",
        "dpkg-architecture -qDEB_HOST_MULTIARCH",
        "compgen -c",
        "docker-compose up -d",
        "git remote -v",
    ]);
}

#[test]
fn a_rule_means_other_names_of_subcommands_and_options() {
    for (rule, command) in [
        ("Bash(rm -rf:*)", "rm -Rf x"),
        ("Bash(rm -rf:*)", "rm -fR x"),
        ("Bash(rm -rf:*)", "rm -R -f x"),
        ("Bash(rm -rf:*)", "rm -vRf x"),
        ("Bash(rm -rf:*)", "rm x -Rf"),
        ("Bash(rm -rf *)", "rm -Rf x"),
        ("Bash(rm -rf*)", "rm -Rf x"),
        ("Bash(rm -rf*)", "rm -R -f x"),
        ("Bash(rm -rf*)", "rm -f -r x"),
        ("Bash(rm -rf x)", "rm -Rf x"),
        ("Bash(rm -r:*)", "rm -R x"),
        ("Bash(rm -Rf:*)", "rm -rf x"),
        ("Bash(rm -R:*)", "/bin/rm -r x"),
        ("Bash(docker run:*)", "docker container run x"),
        ("Bash(docker run:*)", "docker -l debug container run x"),
        ("Bash(docker run:*)", "docker container \"$x\" y"),
        ("Bash(docker container run:*)", "docker run x"),
        ("Bash(docker rm:*)", "docker container rm x"),
        ("Bash(docker exec:*)", "docker container exec x y"),
        ("Bash(docker rmi:*)", "docker image rm x"),
        ("Bash(docker container:*)", "docker container run x"),
        ("Bash(podman run:*)", "podman container run x"),
        ("Bash(docker compose up:*)", "docker-compose up"),
        ("Bash(docker compose down:*)", "docker-compose -f x down"),
        ("Bash(docker-compose up:*)", "docker compose up -d"),
        ("Bash(docker-compose up:*)", "docker-compose up"),
        ("Bash(git push --force:*)", "git push -f r x"),
        ("Bash(git push --force:*)", "git push -uf r x"),
        ("Bash(git push --force:*)", "git push r x --force"),
        ("Bash(git push --force:*)", "git push r +x"),
        ("Bash(git push --force:*)", "git -C y push -f"),
        ("Bash(git push -f:*)", "git push --force r x"),
        ("Bash(git push -f:*)", "git push r +x"),
        ("Bash(git push*--force*)", "git push -f r x"),
    ] {
        for case in [Case::new().deny(&[rule]), Case::new().ask(&[rule])] {
            let ruling = case.mode(Mode::Bypass).bash(command);
            assert_eq!(kind(&ruling), Kind::Deny, "{rule}: {command}");
        }
    }
    for (rule, command) in [
        ("Bash(rm -rf:*)", "rm -R x"),
        ("Bash(rm -rf:*)", "rm -f x"),
        ("Bash(docker run:*)", "docker container ls"),
        ("Bash(docker run:*)", "docker-compose up"),
        ("Bash(docker rm:*)", "docker image rm x"),
        ("Bash(docker compose down:*)", "docker-compose up"),
        ("Bash(git push --force:*)", "git push -u origin x"),
        ("Bash(git push --force:*)", "git push --force-with-lease"),
        ("Bash(git push --force:*)", "git stash push -m +x"),
    ] {
        let ruling = Case::new().mode(Mode::Bypass).deny(&[rule]).bash(command);
        assert_eq!(kind(&ruling), Kind::Allow, "{rule}: {command}: {ruling:?}");
    }
}

/// Returns the words of a simple command as bash expands them.
fn bash_words(text: &str) -> Option<Vec<String>> {
    let script = format!("printf '%s\\0' {text}");
    let mut command = Command::new("bash");
    let output = command.args(["--norc", "-c", &script]).stdin(Stdio::null()).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    output.status.success().then(|| text.split_terminator('\0').map(str::to_owned).collect())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    /// Joined lines become the words that bash makes of them.
    #[test]
    fn words_of_joined_lines_are_those_of_bash(text in "([ab'\" #]|\\\\\n|\\\\|\\$){1,14}") {
        let command = super::super::command::Command::parse(&format!("echo {text}"));
        let Some(words) = command.only() else { return Ok(()) };
        let ours: Option<Vec<&str>> = words[1..].iter().map(shell::Word::exact).collect();
        if let Some(ours) = ours.filter(|ours| !ours.is_empty()) {
            let ours: Vec<String> = ours.into_iter().map(str::to_owned).collect();
            prop_assert_eq!(Some(ours), bash_words(&text));
        }
    }
}
