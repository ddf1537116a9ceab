//! Ways to hide a program in an ordinary script: none of them passes a denial.
#![allow(clippy::disallowed_methods, reason = "bash itself is what the parser is held against")]

use super::*;
use proptest::prelude::*;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

#[track_caller]
fn found(commands: &[&str]) {
    let passes = |command: &&&str| {
        let case = || Case::new().mode(Mode::Bypass).deny(&["Bash(curl:*)"]);
        kind(&case().bash(command)) != Kind::Deny
            || kind(&case().attended().bash(command)) == Kind::Allow
    };
    let passed: Vec<_> = commands.iter().filter(passes).collect();
    assert!(passed.is_empty(), "{passed:#?}");
}

#[test]
fn a_program_in_a_case_is_found() {
    found(&[
        "case x in x) curl y;; esac",
        "case x in (x) curl y;; esac",
        "case x in a|x) ls; curl y; esac",
        "case x in a) ls;; *) curl y;& b) ls;;& esac",
        "case $(curl y) in *) ls;; esac",
        "case x in $(curl y)) ls;; esac",
        "case x in\n  # esac\n  x)\n    curl y\n    ;;\nesac",
        "case x in x) case y in y) curl z;; esac;; esac",
        "case x in esac; curl y",
        "case x in x) echo esac;; esac; curl y",
        "case x in x) ls;; esac | curl y",
        "case x in x) if true; then curl y; fi;; esac",
        "case esac in (esac) curl y;; esac",
        "case x in x) cat <<E;;\n$(curl y)\nE\nesac",
    ]);
}

#[test]
fn a_program_in_an_array_is_found() {
    found(&[
        "a=(curl x); \"${a[@]}\"",
        "a=(curl x); ${a[@]}",
        "a=(curl x); \"${a[0]}\" y",
        "a=(x curl); ${a[1]} y",
        "a=(ls); ${a[5]} curl x",
        "a=(ls); a+=(x); a[0]=curl; \"${a[@]}\"",
        "a=(ls curl); \"${a[@]:1}\" x",
        "a=(\"$(curl x)\")",
        "a=(\n ls\n $(curl x)\n)",
        "declare -a a=(curl x); \"${a[@]}\"",
        "a=(env); \"${a[@]}\" curl x",
        "a=(ls); if x; then a=(curl); fi; \"${a[@]}\" y",
        "a=(ls); declare -n b=a; b=(curl x); \"${a[@]}\"",
        "a=(); \"${a[@]}\" curl x",
        "unset a; a=(); ${a[@]} curl x",
        "a=({curl,x}); \"${a[0]}\" y",
        "a=(ls); a[\"x=0\"]=curl; \"${a[0]}\" y",
        "a[0]=cur; a[0]+=rl; \"${a[0]}\" x",
        "a=(cur); a+=rl; \"${a[0]}\" x",
        "a=(/usr/bin/cur?); \"${a[0]}\" x",
        "a=(ls); a['$(curl x)']=1",
        "a=(['$(curl x)']=1)",
        "i='a[$(curl x)]'; echo ${b[i]}",
        "i='a[$(curl x)]'; echo ${b[$i]}",
        "i='a[$(curl x)]'; b[$i]=1",
        "i='a[$(curl x)]'; echo ${#b[i]}",
        "i='a[$(curl x)]'; echo ${s:i}",
        "i='a[$(curl x)]'; echo ${!i}",
        "declare -A m=([e]=1); echo 'curl x' | sed \"${!m[@]}\"",
        "mapfile -C curl -c 1 a",
        "mapfile -t a < x; \"${a[@]}\"",
        "read -ra a <<< 'curl x'; \"${a[@]}\"",
        "a=(ls); read -ra a <<< 'curl x'; \"${a[@]}\"",
    ]);
}

#[test]
fn a_program_in_a_variable_is_found() {
    found(&[
        "PY=curl; $PY x",
        "PY=curl; \"$PY\" x",
        "PY='curl x'; $PY",
        "PY=curl && $PY x",
        "a=cu; b=rl; $a$b x",
        "a=cu; b=${a}rl; $b x",
        "PY=ls; PY=curl; $PY x",
        "PY=ls; f() { PY=curl; }; f; $PY x",
        "PY=ls; f() { $PY x; }; PY=curl; f",
        "while true; do $PY x; PY=curl; done",
        "false && PY=ls; $PY x",
        "QY=$PY || PY=ls && $PY x",
        "PY=ls | cat; $PY x",
        "x | PY=ls && $PY x",
        "PY=ls & $PY x",
        "PY=ls && true & $PY x",
        "(PY=ls); $PY x",
        "$(PY=ls); $PY x",
        "if false; then PY=ls; fi; $PY x",
        "if a; then PY=ls; elif b; then PY=ls; fi; $PY x",
        "if a; then PY=ls; else X=ls; fi; $PY x",
        "case x in y) PY=ls;; esac; $PY x",
        "while false; do PY=ls; done; $PY x",
        "f() { PY=ls; }; $PY x",
        "f() if true; then PY=ls; else PY=ls; fi; $PY x",
        "PY=ls < missing; $PY x",
        "PY=ls true; $PY x",
        "PY=ls; unset PY; $PY curl x",
        "PY=; $PY curl x",
        "PY=ls; f() { local PY; $PY curl x; }; f",
        "PY=ls; read PY <<< curl; $PY x",
        "PY=ls; command read PY <<< curl; $PY x",
        "PY=ls; r=read; $r PY <<< curl; $PY x",
        "PY=ls; run() { \"$@\"; }; run read PY <<< curl; $PY x",
        "PY=ls; printf -v PY curl; $PY x",
        "PY=ls; printf -v \"$n\" curl; $PY x",
        "PY=ls; : ${PY:=curl}; $PY x",
        "PY=ls; : \"${PY=curl}\"; $PY x",
        "PY=ls; cat <<E\n${PY:=curl}\nE\n$PY x",
        "PY=ls; declare PY=curl; $PY x",
        "PY=ls; builtin declare PY=curl; $PY x",
        "PY=ls; declare \"P\"Y=curl; $PY x",
        "PY=ls; declare $n=curl; $PY x",
        "PY=ls; declare -n n=PY; n=curl; $PY x",
        "declare -l PY; PY=CURL; $PY x",
        "declare -l PY=CURL; $PY x",
        "PY=ls; PY+=x; $PY x",
        "PY=ls; eval 'PY=cu''rl'; $PY x",
        "PY=ls; trap 'PY=curl' DEBUG; $PY x",
        "PY=ls; getopts c: PY -curl; $PY x",
        "PY=ls; mapfile PY <<< curl; $PY x",
        "for PY in ls curl; do $PY x; done",
        "for PY in ls; do :; done; $PY x",
        "for PY; do $PY x; done",
        "xs='ls curl'; for x in $xs; do $x y; done",
        "IFS=x; PY=curlxy; $PY",
        "export IFS=x; PY=curlxy; $PY",
        "for IFS in x; do :; done; PY=curlxy; $PY",
        "read IFS <<< x; PY=curlxy; $PY",
        "export PY={ls,curl}; $PY x",
        "PY=ls; 'export' PY=curl; $PY x",
        "PY=ls; \\declare PY=curl; $PY x",
        "cat <<E\n\tE\n'\nE\ncurl x\n'",
        "cat <<E\n\\\"$(curl x)\nE",
        "echo \"${x:-${y:-'}$(curl z)'}}\"",
        "[[ -f <(curl x) ]]",
        "[[ -f $(curl x) ]]",
        "python3 $! -c x",
        "python3 $(seq 3 1) -c x",
        "python3 $(mktemp -d) -c x",
        "t=$(mktemp -d --bogus); python3 $t -c x",
        "t=$(TMPDIR='-c x' mktemp -d); python3 $t",
        "python3 $TMPDIR -c x",
        "unset HOME; python3 $HOME -c x",
        "awk $(seq 3 1) 'BEGIN{system(\"curl x\")}'",
        "sed $(seq 3 1) 'e curl x' y",
        "shopt -s nullglob; python3 x* -c y",
        "shopt -s null\"glob\"; bash x* -c 'curl y'",
        "shopt -s \"$x\"; bash x* -c 'curl y'",
        "s=shopt; $s -s nullglob; bash x* -c 'curl y'",
        "bash -O nullglob -c 'bash x* -c \"curl y\"'",
        "PY=c*l; $PY x",
        "_=ls; true curl; $_ x",
        "BASH=ls; $BASH -c 'curl x'",
        "REPLY=ls; read <<< curl; $REPLY x",
        "PY=$(which curl); $PY x",
        "PY=$(which missing); $PY curl x",
        "PY=$(command -v curl) && \"$PY\" x",
        "which() { echo curl; }; PY=$(which ls); $PY x",
        "$HOME/../usr/bin/curl x",
        "~/bin/curl x",
        "HOME='curl -o' bash -c '$HOME/x/ls'",
        "HOME='curl -o '; $HOME/x/ls",
        "PY=ls; bash -c '$PY x'",
        "PY=curl; bash -c \"$PY x\"",
        "PY=curl; env $PY x",
        "PY=curl; find . -exec $PY {} +",
        "x=' curl'; $x'' y",
        "$! curl x",
        "n=$(wc -l); wc() { echo x; }; $n",
    ]);
}

#[test]
fn a_program_in_what_the_shell_calculates_is_found() {
    found(&[
        "x='a[$(curl y)]'; ((x))",
        "x='a[$(curl y)]'; echo $((x + 1))",
        "x='a[$(curl y)]'; echo $((1 + ${x}))",
        "x='a[$(curl y)]'; for ((i = x; i < 1; i++)); do :; done",
        "x='a[$(curl y)]'; [[ $x -eq 1 ]]",
        "x='a[$(curl y)]'; [[ 1 -lt x ]]",
        "x='a[$(curl y)]'; y=x; echo $((y))",
        "x=$(printf 'a[\\44(curl y)]'); echo $((x))",
        "x='a[$(curl y)]' bash -c 'echo $((x))'",
        "x='a[$(curl y)]' bash -c 'if false; then x=1; fi; echo $((x))'",
        "x='a[$(curl y)]'; echo `echo $((x))`",
        "x='a[$(curl y)]'; cat <<E\n$((x))\nE",
        "f() { echo $(($1)); }; f 'a[$(curl y)]'",
        "read x; echo $((x))",
        "declare -i x; x='a[$(curl y)]'; echo $((x))",
        "let 'x=a[$(curl y)]'",
        "[[ -v 'a[$(curl y)]' ]]",
        "unset 'a[$(curl y)]'",
        "read 'a[$(curl y)]' <<< z",
        "x=$(grep --color=never . <<< 'a[$(curl y)]'); echo $((x))",
        "x=$(grep -e -c y); echo $((x))",
        "x=$(seq -f 'a[$(curl y)]%g' 1); echo $((x))",
        "echo $((\"))'\"))\ncurl x #'",
        "echo $((`curl y`))",
        "echo $(($(curl y)))",
        "(( $(curl y) ))",
        "((curl y); ls)",
        "echo $((curl y); ls)",
        "wc() { echo 'a[$(curl y)]'; }; n=$(wc -l); echo $((n))",
        "echo \"${x:-'}$(curl y)'}\"",
        "echo ${x@P}",
        "PS4='$(curl y)'; set -x; ls",
    ]);
}

#[test]
fn a_program_that_a_variable_of_the_environment_names_is_found() {
    found(&[
        "CC=curl make",
        "export CC=curl; make",
        "export CC; CC=curl; make",
        "env CC=curl make",
        "declare -x CC=curl; make",
        "RUSTC_WRAPPER=curl cargo build",
        "CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER=curl cargo test",
        "EDITOR='curl x' git commit",
        "GIT_SSH_COMMAND='curl x' git fetch",
        "GIT_EDITOR=$x git commit",
        "GIT_PAGER='cat | curl x' git log",
        "LESSOPEN='|curl %s' less x",
        "GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=alias.x GIT_CONFIG_VALUE_0='!curl y' git x",
        "MAKEFLAGS='--eval=x:;curl' make x",
        "TAR_OPTIONS='--to-command=curl' tar xf y",
        "NODE_OPTIONS='--import data:text/javascript,x' node y.js",
        "PERL5OPT='-Mx;system(1)' perl y.pl",
        "BASH_ENV=<(echo curl x) bash y.sh",
        "BASH_ENV=/dev/stdin bash y.sh",
        "SHELL=/bin/bash script <<< 'curl x'",
        "PATH=.:$PATH foo",
        "PATH=$PATH:. foo",
        "export PATH=.:/bin; foo",
        "env PATH=. foo",
        "npm_config_script_shell=curl npm test",
    ]);
}

#[test]
fn a_program_behind_the_options_of_another_is_found() {
    found(&[
        "make CC=curl",
        "make CC='curl -o x'",
        "make CC=/usr/bin/curl",
        "make SHELL=/bin/bash",
        "make SHELL=curl",
        "make .SHELLFLAGS='-c curl'",
        "make 'X=$(shell curl y)'",
        "make 'X!=curl y'",
        "make CC=\"$x\"",
        "make \"$x\"",
        "make $x",
        "make -f - <<< 'x:;curl y'",
        "make -f- <<< 'x:;curl y'",
        "make -sf - <<< 'x:;curl y'",
        "make -f /dev/stdin",
        "make --file=- x",
        "make --file - x",
        "make --makefile=/dev/fd/0",
        "make --mak=- x",
        "make -f <(echo 'x:;curl y')",
        "make --eval='x:;curl y' x",
        "make --ev 'x:;curl y' x",
        "make -E 'x:;curl y' x",
        "node -e 'x'",
        "node --test -e 'x'",
        "node --test --eval 'x'",
        "node -pe 'x'",
        "node --test --import 'data:text/javascript,x'",
        "node --test --import='data:text/javascript,x'",
        "node --test --require /dev/stdin",
        "node --test -r /dev/stdin",
        "node",
        "node -",
        "node \"$x\"",
        "deno eval x",
        "deno run -",
        "bun -e x",
        "bun x curl y",
        "python3 \"$x\"",
        "python3 $x y.py",
        "python3 -uc 'x'",
        "python3 -m timeit 'x'",
        "python3 -m \"$x\"",
        "python3 -X dev -c x",
        "python3 -Wignore",
        "perl -pe 's/a/b/' x",
        "perl '-Mx;system(1)' y",
        "ruby -ne 'x' y",
        "php -r 'x'",
        "bash -ec 'curl x'",
        "bash -c -- 'curl x'",
        "bash -c -e 'curl x'",
        "bash -co pipefail 'curl x'",
        "bash -o pipefail -c 'curl x'",
        "bash -c '\"$@\"' _ curl x",
        "bash -c '$0 x' curl",
        "bash -c \"$x\"",
        "bash \"$x\"",
        "fish -C 'curl x' y",
        "git config alias.x '!curl y'",
        "git config --global alias.x '!curl y'",
        "git config set alias.x '!curl y'",
        "git config core.pager curl",
        "git config core.editor \"$x\"",
        "git config --add core.sshCommand curl",
        "git config include.path x",
        "git config core.hooksPath x",
        "git config -e",
        "git config \"$x\" y",
        "git -c core.pager=curl log",
        "git -c user.name=x -c core.fsmonitor=curl status",
        "git -c \"$x\" status",
        "git clone 'ext::curl x'",
        "git remote add x 'ext::curl y'",
        "git bisect run curl x",
        "git bisect run \"$x\"",
        "git submodule foreach 'curl x'",
        "git rebase -x 'curl x' main",
        "sqlite3 x '.shell curl y'",
        "sqlite3 x '.sh curl y'",
        "sqlite3 x 'select 1;\n .system curl y'",
        "sqlite3 x -cmd '.shell curl y' 'select 1'",
        "sqlite3 x \"select edit('x', 'curl')\"",
        "sqlite3 x '.dump |curl y'",
        "sqlite3 x",
        "sqlite3 x \"$sql\"",
        "sqlite3 \"$x\" 'select 1'",
        "psql -c '\\! curl x'",
        "psql -c \"copy x from program 'curl y'\"",
        "psql <<< '\\! curl x'",
        "mysql -e 'system curl x'",
        "mysql -e'\\! curl x'",
    ]);
}

#[test]
fn a_program_that_others_are_handed_is_found() {
    found(&[
        "find . -exec curl {} +",
        "find . -name x -exec ls {} \\; -exec curl {} \\;",
        "find /usr/bin -name 'cur?' -exec {} x \\;",
        "find . -exec sh -c '{} x' \\;",
        "find . -exec sh -c 'curl {}' \\;",
        "find . \"$x\" curl y \\;",
        "find . $x",
        "find . \"$x\" curl y \"$z\"",
        "find . -exec env curl {} +",
        "ls | xargs curl",
        "ls | xargs -n1 -P 4 curl",
        "echo curl | xargs -I{} {} x",
        "echo curl | xargs -I % % x",
        "echo 'curl x' | xargs -I{} sh -c '{}'",
        "echo curl | xargs -i {} x",
        "echo curl | xargs --replace {} x",
        "tar -Icurl -cf x y",
        "rsync -ecurl x y",
        "echo curl | xargs env",
        "ls | xargs python3",
        "ls | xargs python3 -c x",
        "ls | xargs -a x --foo curl",
        "timeout 5 curl \"$x\"",
        "timeout -s KILL 5 curl",
        "timeout --unknown 5 curl",
        "timeout \"$x\" curl y",
        "env -u A B=c curl x",
        "env \"$x\" curl y",
        "env -S 'curl x'",
        "nice -n 5 curl x",
        "sudo -u x -- curl y",
        "exec curl x",
        "exec -a ls curl x",
        "uv run curl x",
        "uv run --with x curl y",
        "uv run --unknown x curl y",
        "poetry run curl x",
        "bundle exec curl x",
        "npx curl x",
        "npx -c 'curl x'",
        "npm exec -- curl x",
        "npm x curl y",
        "npm exec -c 'curl x'",
        "pnpm exec curl x",
        "yarn exec curl x",
        "docker exec -it x curl y",
        "docker exec x sh -c 'curl y'",
        "docker run x curl y",
        "docker compose exec x curl y",
        "kubectl exec x -- curl y",
        "gcc -wrapper curl,x y.c",
        "tar -I curl -cf x y",
        "tar cIf curl x y",
        "tar cf x y --to-command=curl",
        "tar \"$x\" y",
        "rsync -e curl x y",
        "rsync $x y",
        "fd -x curl",
        "hash -p /usr/bin/curl ls; ls x",
        "source /dev/stdin <<< 'curl x'",
        "source <(echo curl x)",
        ". \"$x\"",
        "source \"/dev/fd/$x\"",
        "trap 'curl x' EXIT",
        "trap \"$x\" EXIT",
        "run() { \"$@\"; }; run curl x",
        "run() { shift; \"$@\"; }; run a curl x",
        "run() { \"$1\" x; }; run curl",
        "run() { $1; }; run 'curl x'",
        "run() { $@; }; run 'curl x'",
        "run() { \"$@\"; }; run \"$x\" y",
        "set -- curl x; \"$@\"",
        "run() { \"$@\" x; }; go() { run \"$@\"; }; go curl",
        "run() { \"$1\" \"$2\"; }; run env curl",
        "awk 'BEGIN{system(\"curl x\")}'",
        "awk '{ print | \"curl x\" }' y",
        "awk '/a|b/ { \"curl x\" | getline }' y",
        "awk 'BEGIN { x = 1 + /\"/; \"curl x\" | getline; y = 1 + /\"/ }'",
        "awk 'BEGIN { a / \"/\" | \"curl x\" }'",
        "awk 'x++ /\"/ { print | \"curl x\" } /\"/' y",
        "awk '/[/]/ { print | \"curl x\" } /\"/' y",
        "awk '{ print \"\\\"\" | \"curl x\" }' y",
        "awk '{ # \"\n print | \"curl x\" }' y",
        "awk \"$x\" y",
        "awk $x '{ print }' y",
        "awk -v x=1 -f y.awk z",
        "sed -n \"${x}p\" y",
        "n=1; sed \"${n}e curl x\" y",
        "java -XX:OnError='curl x' y",
        "helm template x --post-renderer curl",
    ]);
}

#[test]
fn a_rule_about_a_command_means_its_other_names() {
    for (rule, command) in [
        ("Bash(npm publish:*)", "npm pub"),
        ("Bash(npm publish:*)", "npm publ --tag x"),
        ("Bash(npm publish:*)", "npm --tag x publis"),
        ("Bash(npm install:*)", "npm i x"),
        ("Bash(npm install:*)", "npm add x"),
        ("Bash(npm i:*)", "npm install x"),
        ("Bash(npm uninstall:*)", "npm rm x"),
        ("Bash(npm run deploy)", "npm run-script deploy"),
        ("Bash(npm run deploy:*)", "npm rum deploy"),
        ("Bash(pnpm install:*)", "pnpm add x"),
        ("Bash(cargo build:*)", "cargo b --release"),
        ("Bash(cargo run:*)", "cargo r"),
        ("Bash(cargo t:*)", "cargo test"),
        ("Bash(git add:*)", "git stage x"),
        ("Bash(git push:*)", "git send-pack x"),
        ("Bash(git push:*)", "git -C \"$x\" push"),
        ("Bash(git push:*)", "git -C $x status"),
        ("Bash(git push:*)", "x=push; git $x"),
        ("Bash(git push:*)", "a=(push -f); git \"${a[@]}\""),
        ("Bash(git push:*)", "shopt -s nullglob; git x* push"),
        ("Bash(git push:*)", "git \"pu$x\""),
        ("Bash(git push:*)", "git -c user.name=x push"),
        ("Bash(git push:*)", "run() { git \"$@\"; }; run push"),
    ] {
        for case in [Case::new().deny(&[rule]), Case::new().ask(&[rule])] {
            let ruling = case.mode(Mode::Bypass).bash(command);
            assert_eq!(kind(&ruling), Kind::Deny, "{rule}: {command}");
        }
    }
    for (rule, command) in [
        ("Bash(npm publish:*)", "npm run publ"),
        ("Bash(npm test:*)", "npm run t"),
        ("Bash(npm publish:*)", "npm pack"),
        ("Bash(cargo build:*)", "cargo bench"),
        ("Bash(git push:*)", "git -C \"$x\" status"),
        ("Bash(git push:*)", "git checkout \"feature/$x\""),
    ] {
        let ruling = Case::new().mode(Mode::Bypass).deny(&[rule]).bash(command);
        assert_eq!(kind(&ruling), Kind::Allow, "{rule}: {command}: {ruling:?}");
    }
}

#[test]
fn what_was_once_hidden_is_found() {
    let text = include_str!("../../../tests/data/hidden-commands.sh");
    let (of_rm, of_push) = text.split_once("## git push\n").unwrap();
    let mut passed = Vec::new();
    for (rule, text) in [("Bash(rm:*)", of_rm), ("Bash(git push:*)", of_push)] {
        let commands = text.split("\n\n").map(|it| it.trim_matches('\n'));
        for command in commands.filter(|it| !it.is_empty() && !it.starts_with("## ")) {
            let case = Case::new().mode(Mode::Bypass).deny(&[rule]);
            passed.extend((kind(&case.bash(command)) != Kind::Deny).then_some(command));
        }
    }
    assert!(passed.is_empty(), "{passed:#?}");
}

/// Commands for random scripts. In the environment `PY` and `QY` are `curl`.
const FRAGMENTS: [&str; 125] = [
    "PY=curl",
    "PY=ls",
    "PY=",
    "PY=cu",
    "PY+=rl",
    "PY=CURL",
    "PY='ls x'",
    "QY=$PY",
    "QY=\"$PY x\"",
    "QY=rl",
    "QY=ls",
    "$PY x",
    "\"$PY\" x",
    "${PY}rl x",
    "$PY$QY x",
    "$PY curl x",
    "$PY $QY",
    "\"${PY}\" \"$QY\"",
    "a=(curl x)",
    "a=(ls x)",
    "a=()",
    "a+=(x)",
    "a[0]=curl",
    "a[n]=curl",
    "a=({curl,x})",
    "\"${a[@]}\"",
    "${a[@]} curl",
    "${a[0]} x",
    "\"${a[1]}\" curl",
    "\"${a[0]}\" x",
    "\"${a[n]}\" x",
    "case $PY in ls) curl x;; *) $PY x;; esac",
    "case x in y) PY=ls;; esac",
    "case x in x) PY=curl;; esac",
    "if true; then PY=ls; else PY=ls; fi",
    "if false; then PY=ls; fi",
    "if true; then PY=ls; else QY=ls; fi",
    "if $PY; then :; elif :; then PY=curl; fi",
    "for PY in ls curl; do $PY x; done",
    "for PY in ls; do $PY x; done",
    "for PY in $QY; do $PY x; done",
    "while $PY x; do PY=ls; break; done",
    "f() { $PY x; }",
    "f",
    "g() { local PY; $PY curl; }",
    "g",
    "h() { PY=curl; }",
    "h",
    "run() { \"$@\"; }",
    "run \"$PY\" x",
    "run curl x",
    "run ls",
    "run PY=ls",
    "one() { shift; \"$1\" x; }",
    "one ls curl",
    "one ls ls",
    "unset PY",
    "read PY <<< curl",
    "run read PY <<< curl",
    "export PY=curl",
    "'export' PY=curl",
    "export PY={ls,curl}",
    "(PY=ls)",
    "PY=ls < missing",
    "PY=ls ls",
    "declare -l PY",
    "declare -n QY=PY",
    "n=1",
    "n='a[$(curl x)]'",
    ": $((n))",
    "((n))",
    "[[ $n -eq 1 ]]",
    ": ${a[n]}",
    ": ${PY:n}",
    "IFS=u",
    "set -- curl x",
    "\"$@\"",
    "shift",
    "eval \"$PY x\"",
    "trap 'PY=curl' DEBUG",
    "printf -v PY curl",
    ": ${PY:=curl}",
    "PY=${PY:-curl}",
    ": <<E\n$($PY x)\nE\n:",
    "declare -i n",
    "declare -i PY=5",
    "n+=1",
    "n+='a[$(curl x)]'",
    "n=`wc -l`",
    "QY=`echo n`",
    "local n",
    "for PY do $PY x; done",
    "for n in 1 'a[$(curl x)]'; do :; done",
    "for PS4 in '$(curl x)'; do :; done",
    "read n <<< 'a[$(curl x)]'",
    "printf -v RANDOM 'a[$(curl x)]'",
    ": ${OPTIND:=n}",
    "OPTIND=n",
    "set -x",
    "PS4+=$PY",
    "run declare -i n",
    "run declare -n PY=QY",
    "export \"$PY=$QY\"",
    "time -- $PY x",
    "alias ls=curl",
    "shopt -s expand_aliases",
    "echo \"`\\\"$PY\\\" x`\"",
    "unset n",
    "command set -- curl x",
    "eval 'run curl x'",
    "trap 'run curl x' EXIT",
    "QY='run curl x'",
    "$QY",
    "export -f run",
    "/bin/bash -c 'run curl x'",
    "/bin/bash -c 'local PY=ls; $PY x'",
    "/bin/bash -oc posix '$PY x'",
    ": <<'E'\nE x\nE\n:",
    ": $(: <<E\nE x\nE\n)",
    "# x",
    "a=(1)#x",
    "command_not_found_handle() { \"$@\"; }",
    "nope curl x",
    "exec {a[n]}>&1",
    "one curl",
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 192, ..ProptestConfig::default() })]

    /// A script that passes a denial does not run the denied program in bash.
    #[test]
    fn what_passes_a_denial_does_not_run_it(
        parts in prop::collection::vec((prop::sample::select(&FRAGMENTS[..]), 0..9_usize), 1..9),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..4)
    ) {
        const BETWEEN: [&str; 9] = ["; ", "; ", "\n", "\n", "\n", " && ", " || ", " | ", " & "];
        let script: String = parts.iter().flat_map(|(part, at)| [*part, BETWEEN[*at]]).collect();
        let mut script = format!("{script}:\nwait");
        // The shell joins these lines again, unless they are quoted.
        cuts.iter().for_each(|cut| script.insert_str(cut.index(script.len()), "\\\n"));
        let ruling = Case::new().mode(Mode::Bypass).deny(&["Bash(curl:*)"]).bash(&script);
        if kind(&ruling) == Kind::Allow {
            prop_assert!(!runs_curl(&script), "{script}");
        }
    }
}

/// True when bash starts `curl` for `script`. It finds no other program.
fn runs_curl(script: &str) -> bool {
    let folder = tempfile::tempdir().unwrap();
    for (name, code) in [("curl", "#!/bin/sh\n: > ran\n"), ("ls", "#!/bin/sh\n:\n")] {
        let path = folder.path().join(name);
        std::fs::write(&path, code).unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
    }
    let status = Command::new("/bin/bash")
        .args(["--norc", "-c", script])
        .env_clear()
        .envs([("PATH", folder.path().as_os_str())])
        .envs([("PY", "curl"), ("QY", "curl")])
        .current_dir(folder.path())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    status.unwrap();
    folder.path().join("ran").exists()
}
