//! Commands that the shell reads in another way than they look: each was found by an attack.

use super::*;
use spellings::{found, runs};

#[test]
fn a_command_behind_arguments_that_may_be_empty_is_found() {
    found(&[
        "\"$@\" touch c",
        "\"${@}\" touch c",
        "\"$@\" \"$@\" touch c",
        "f(){ \"$@\" touch c; }; f",
        "f(){ \"$@\" touch c; }; f nice",
        "! \"$@\" touch c",
        "time \"$@\" touch c",
        "if \"$@\" touch c; then ls; fi",
        "echo \"$(\"$@\" touch c)\"",
        "f(){ \"$@\"; }; \"$@\" f touch c",
        "f(){ \"$@\"; }; \"$@\" eval 'f touch c'",
    ]);
    found(&["run() { \"$@\"; }; run ls x", "\"$1\" ls x"]);
    runs(&["show() { echo \"$@\"; ls \"$1\"; }; show x"]);
}

#[test]
fn a_number_sign_or_an_end_in_a_pattern_of_a_test_is_not_understood() {
    found(&[
        "[[ a =~ (#) ]]; touch c\n]]",
        "[[ a == @(#) ]]; touch c\n]]",
        "[[ a =~ b|#c ]]; touch c\n]]",
        "[[ a =~ (a #) ]]; touch c\n]]",
        "([[ a =~ (]]) ]] && touch c)",
        "([[ a =~ (]]) # ]]; touch c\n)",
    ]);
    runs(&[
        "[[ $x =~ ^# ]] && ls",
        "[[ $x == \"#\"* ]] && ls",
        "[[ ( $x == a || $y == b ) &&\n  -f c ]] && ls # the end",
        "[[ $x =~ ^(a|b)+$ ]] && ls",
    ]);
}

#[test]
fn a_command_behind_a_document_is_found() {
    found(&[
        "cat <<'E\\'\nE\\\ntouch c\nE\\",
        "cat <<E\\\\\nE\\\ntouch c\nE\\",
        "cat <<-'E\\'\n\tE\\\ntouch c\nE\\",
        "cat <<'E\\'\na\\\nE\\\ntouch c\nE\\",
        "cat <<E $(\ntouch c\nE\n)\nE",
        "cat <<E <(\ntouch c\nE\n)\nE",
        "cat <<E \"$(\ntouch c\nE\n)\"\nE",
        "cat <<E ${x:-$(\ntouch c\nE\n)}\nE",
        "cat <<E >$(\ntouch c\nE\n)\nE",
        "cat <<E; a=($(\ntouch c\nE\n))\nE",
        "cat <<E; case $(\ntouch c\nE\n) in x) ;; esac\nE",
        "cat <<E; for i in $(\ntouch c\nE\n); do :; done\nE",
        "cat <<E; [[ a &&\nE\nb ]]\ntouch c\nE",
        "cat <<E; a=(\nE\nb)\ntouch c\nE",
        "cat <<E; ((1 +\nE\n1))\ntouch c\nE",
        "echo $(cat <<E)\ntouch c\nE",
    ]);
    runs(&[
        "cat <<'E\\'\na\nE\\\nls",
        "cat <<E \"$(ls)\"\n$(ls x)\nE\nls",
        "git commit -m \"$(cat <<'EOF'\nA text\nEOF\n)\" && ls",
        "cat <<A <<B\na\nA\nb\nB\nls",
        "(cat <<E)\nx\nE",
    ]);
}

#[test]
fn variables_that_the_shell_sets_are_no_numbers() {
    found(&[
        ": 'a[$(touch c)]'; (( _ ))",
        "read <<< 'a[$(touch c)]'; ((REPLY))",
        "read <<< 'a[$(touch c)]'; [[ $REPLY -eq 1 ]]",
        "mapfile <<< 'a[$(touch c)]'; ((MAPFILE))",
        "[[ 'a[$(touch c)]' =~ .* ]]; ((BASH_REMATCH))",
        "getopts x: y -x 'a[$(touch c)]'; ((OPTARG))",
        "cd 'a[$(touch c)]'; ((PWD))",
        "n=$(grep -c -H --label='a[$(touch c)]' x <<< y); ((n))",
        "n=$(grep -c --label='a[$(touch c)]' -H x <<< y); ((n))",
        "n=$(grep -c x 'a[$(touch c)]' b); ((n))",
        "n=$(grep -c x *); ((n))",
        "n=$(grep -cr x); ((n))",
        "n=$(grep -c -r x); ((n))",
        "n=$(grep -c \"$o\" x); ((n))",
        "nice -n $(printf 'touch c\\0' | wc -l --files0-from -)",
    ]);
    runs(&[
        "n=$(grep -c x a); ((n > 1)) && ls",
        "n=$(ls | grep -c -i x); ((n > 1)) && ls",
        "n=$(wc -l < a); ((n > 1)) && ls",
        "((SECONDS > 1)) && ls",
        "n=$(grep -c \"$o\" a); [ \"$n\" -gt 1 ] && ls",
    ]);
}

#[test]
fn elements_of_an_array_with_an_index_are_unknown() {
    found(&[
        "a=([1]=c [0]=touch); \"${a[@]}\"",
        "a=(ls [0]=touch); \"${a[@]}\" c",
        "a=(ls [0]+=x); \"${a[@]}\" c",
        "declare -a a=(ls [0]=touch); \"${a[@]}\" c",
    ]);
    runs(&[
        "a=(ls x); \"${a[@]}\"",
        "declare -A m=([a]=1 [b]=2); for k in \"${!m[@]}\"; do echo \"$k\"; done",
    ]);
}

#[test]
fn a_tilde_in_a_value_is_no_text() {
    found(&[
        "HOME=touch; x=~; $x c",
        "OLDPWD=touch; x=~-; $x c",
        "PWD=touch; x=~+; $x c",
        "export HOME=touch x=~; $x c",
        "HOME=touch; export x=~; $x c",
        "x=~+; $x c",
        "HOME=touch; export PAGER=~; man x",
        "HOME=-c; bash ~ 'touch c'",
        "read HOME <<< -c; bash ~ 'touch c'",
        "HOME=-c bash -c 'bash ~ \"touch c\"'",
        "HOME='-cimport os#'; python3 ~/x",
        "HOME='-cimport os#'; x=y; python3 ~/$x",
    ]);
    runs(&[
        "x=~/bin; $x/tool c; ls \"$x\"",
        "export PATH=~/bin:$PATH; ls",
        "PATH=$PATH:~/bin; ls",
        "x='~'; echo \"$x\"",
        "HOME=/x ls ~/y; ls ~",
        "bash ~/y.sh",
        "bash -c 'cd ~ && ls ~/x'",
    ]);
}

#[test]
fn an_assignment_that_never_happens_sets_nothing() {
    for script in [
        "\"y\"=ls; $y c",
        "\\y=ls; $y c",
        "y\"=\"ls; $y c",
        "y\\=ls; $y c",
        "\"\"y=ls; $y c",
        "readonly y\ny=ls\n$y c",
        "x=$((1/0)) y=ls\n$y c",
        "y[1]=ls; $y c",
        "y=ls\n{ $y c; }",
    ] {
        found(&[&format!("export y; read y < <(echo touch); bash -c '{script}'")]);
    }
    found(&["x='a PAGER=touch'; export \"A\"=$x; man x"]);
    runs(&[
        "bash -c 'y=ls; $y c'",
        "bash -c 'for x in a b; do\n  ls \"$x\"\ndone'",
        "bash -c 'cd x\nls\nx=1\necho \"$x\"'",
        "export \"A=$x\" \"B=c\"; ls",
        "a[0]=x; a[1]=\"$y\"; echo \"${a[@]}\"",
    ]);
}

#[test]
fn code_of_a_language_is_found_by_any_path_and_behind_any_module() {
    found(&[
        "$(which python3) -m timeit 'import os'",
        "~/../../usr/bin/python3 -m timeit 'import os'",
        "\"$x\"/python3 -m timeit 'import os'",
        "$(which sqlite3) a '.shell touch c'",
        "$(which pnpm) touch c",
        "$(which env) touch c",
        "$(which git) -c alias.x='!touch c' x",
        "$(which xargs) -0 touch",
        "\"$x/exe\" -c 'touch c'",
        "python3 -m cProfile -m timeit 'import os'",
        "python3 -m profile -m timeit 'import os'",
        "python3 -m trace --module timeit 'import os'",
        "python3 -m trace --module=timeit 'import os'",
        "python3 -m runpy timeit 'import os'",
        "python3 -m cProfile -m cProfile -m timeit 'import os'",
        "python3 -m cProfile -m \"$x\" 'import os'",
        "python3 -m asyncio.__main__ <<< 'import os'",
        "python3 -m timeit.__main__ 'import os'",
        "python3 -m _pyrepl <<< 'import os'",
        "NODE_OPTIONS='--import \"data:text/javascript,x\"' node a",
        "NODE_OPTIONS='--import \\data:x' node a",
        "perl '-d:PPPort;INIT{system qw(touch c)}' a",
        "debconf touch c",
        "dpkg --pre-invoke='touch c' --configure -a",
        "dpkg --post-inv='touch c' --configure -a",
        "hatch -e x run touch c",
    ]);
    runs(&[
        "$(which python3) a.py",
        "\"$(which git)\" status",
        "~/bin/tool x",
        "python3 -m pytest -m slow",
        "python3 -m coverage run -m pytest -q",
        "python3 -m cProfile -o out a.py",
        "python3 -m cProfile -m pytest",
        "NODE_OPTIONS=--max-old-space-size=4096 node a.js",
        "perl -d:NYTProf a.pl",
        "hatch -e x build",
        "dpkg -l && dpkg --configure -a && dpkg -i x.deb && dpkg --purge x",
    ]);
}

#[test]
fn a_rule_means_long_and_short_options_anywhere() {
    let denied = |rule: &str, command: &str| {
        kind(&Case::new().mode(Mode::Bypass).deny(&[rule]).bash(command)) == Kind::Deny
    };
    for (rule, command) in [
        ("Bash(rm --recursive:*)", "rm -rf x"),
        ("Bash(rm --recursive:*)", "rm -R x"),
        ("Bash(rm --recursive:*)", "rm --rec x"),
        ("Bash(rm --force:*)", "rm -rf x"),
        ("Bash(rm --force:*)", "rm -f x"),
        ("Bash(rm --recursive --force:*)", "rm -rf x"),
        ("Bash(rm --force --recursive:*)", "rm -rf x"),
        ("Bash(rm --recursive --force:*)", "rm -r --force x"),
        ("Bash(rm -r --force:*)", "rm -rf x"),
        ("Bash(rm * --force)", "rm -f x"),
        ("Bash(rm*--force*)", "rm -f x"),
        ("Bash(rm -rf:*)", "rm --recursive --force x"),
        ("Bash(rm -rf*)", "rm --recursive --force x"),
        ("Bash(rm -rf*)", "rm --recursive -f x"),
        ("Bash(git push * --force)", "git push r x -f"),
        ("Bash(git push*--force)", "git push r x -f"),
        ("Bash(git push * --force)", "git push r +x"),
        ("Bash(git push * -f)", "git push --force r x"),
        ("Bash(* --force)", "git push r x -f"),
        ("Bash(docker build:*)", "docker buildx build ."),
        ("Bash(docker build:*)", "docker buildx b ."),
        ("Bash(docker build:*)", "docker builder build ."),
    ] {
        assert!(denied(rule, command), "{rule}: {command}");
    }
    for (rule, command) in [
        ("Bash(rm --recursive:*)", "rm -f x"),
        ("Bash(rm --force:*)", "rm -r x"),
        ("Bash(rm * --force)", "rm -i x"),
        ("Bash(git push * --force)", "git push r x"),
        ("Bash(docker build:*)", "docker buildx ls"),
    ] {
        assert!(!denied(rule, command), "{rule}: {command}");
    }
}
