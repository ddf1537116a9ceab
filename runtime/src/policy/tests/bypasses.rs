//! Commands that must not run under a rule that seems to be about something else, and ordinary
//! commands that must.
#![allow(clippy::disallowed_methods, reason = "bash itself is what the parser is held against")]

use super::*;
use proptest::prelude::*;
use std::io::Write as _;
use std::process::{Command, Stdio};

/// Name, program, command.
fn corpus() -> Vec<(String, String, String)> {
    let text = include_str!("../../../tests/data/shell-bypasses.tsv");
    let rows = text.lines().filter(|line| !line.starts_with('#')).map(|line| {
        let mut cells = line.splitn(3, '\t').map(str::to_owned);
        let mut next = || cells.next().unwrap();
        let (name, program) = (next(), next());
        let command: String = serde_json::from_str(&next()).unwrap();
        (name, program, command)
    });
    rows.collect()
}

#[test]
fn no_way_around_a_rule_is_allowed_by_the_rule_for_its_program() {
    let corpus = corpus();
    assert_eq!(corpus.len(), 73);
    for canary in ["/tmp/canary", "canary", "./x/canary"] {
        for (name, program, command) in &corpus {
            let rule = format!("Bash({program}:*)");
            let command = command.replace("{C}", canary);
            for rules in [vec![&*rule], vec![&*rule, "Bash(echo:*)", "Bash(wait:*)", "Bash([:*)"]] {
                let case = Case::new().allow(&rules);
                assert_eq!(kind(&case.bash(&command)), Kind::Deny, "{name}: {command}");
                let case = Case::new().allow(&rules).attended();
                assert_eq!(kind(&case.bash(&command)), Kind::Ask, "{name}: {command}");
                let case = Case::new().scope(&rules).mode(Mode::Bypass);
                assert_eq!(kind(&case.bash(&command)), Kind::Deny, "{name}: {command}");
            }
        }
    }
}

#[test]
fn ordinary_commands_under_ordinary_rules_are_allowed() {
    for (rules, command) in [
        (&["Bash(git diff:*)"][..], "git diff"),
        (&["Bash(git diff:*)"], "git diff --stat HEAD~1 -- src/main.rs"),
        (&["Bash(git diff *)"], "git diff 'HEAD@{1}' \"a b.txt\""),
        (&["Bash(git:*)"], "git log --oneline -n 5 --format='%h %s'"),
        (&["Bash(git:*)"], "git status && git diff; git show HEAD:a.txt"),
        (&["Bash(git commit:*)"], "git commit -m \"It works\" -a"),
        (&["Bash(npm run test *)"], "npm run test -- --watch=false"),
        (&["Bash(npm run test:*)"], "npm run test"),
        (&["Bash(npm:*)"], "npm test"),
        (&["Bash(cargo test:*)", "Bash(head:*)"], "cargo test -p x 2>&1 | head -50"),
        (&["Bash(cargo:*)"], "cargo build --release"),
        (&["Bash(cargo test:*)"], "cargo test >/dev/null 2>&1"),
        (&["Bash(ls:*)"], "ls -la src/*.rs ~/x"),
        (&["Bash(ls)"], "ls"),
        (&["Bash(make check)"], "make check"),
        (&["Bash(make:*)"], "make -j4 test"),
        (&["Bash(rg:*)"], "rg -n 'fn \\w+' src --glob '*.rs' --pretty"),
        (&["Bash(grep:*)", "Bash(wc:*)"], "grep -rn \"a b\" . | wc -l"),
        (&["Bash(find:*)"], "find . -name '*.rs' -not -path './target/*'"),
        (&["Bash(sed:*)"], "sed -n '1,20p' a.txt"),
        (&["Bash(awk:*)"], "awk -F: '{print $1}' a.txt"),
        (&["Bash(sort:*)"], "sort -k2,2 -n a.txt"),
        (&["Bash(echo:*)"], "echo 'a $b `c` > d'"),
        (&["Bash(echo:*)"], "echo hi # and nothing else; rm x"),
        (&["Bash(echo:*)"], "echo a \\\n  b"),
        (&["Bash(python3 -m pytest:*)"], "python3 -m pytest -q tests/test_a.py"),
        (&["Bash(node scripts/build.js:*)"], "node scripts/build.js --fast"),
        (&["Bash(bash scripts/test.sh:*)"], "bash scripts/test.sh -v"),
        (&["Bash(python3 -c 'print(1)')"], "python3 -c 'print(1)'"),
        (&["Bash(cargo test:*)"], "timeout 60 cargo test"),
        (&["Bash(cargo test:*)"], "nice -n 10 cargo test"),
        (&["Bash(cargo test:*)"], "time cargo test"),
        (&["Bash(curl --version:*)", "Bash(git status)"], "git status\ncurl --version"),
        (&["Bash(tar tf:*)"], "tar tf a.tar"),
        (&["Bash(mkdir:*)"], "mkdir -p build/x"),
        (&["Bash(./scripts/check.sh:*)"], "./scripts/check.sh a"),
        (&["Bash(docker ps:*)"], "docker ps -a"),
        (&["Bash(npm run *:unit)"], "npm run test:unit"),
        (&["Bash(test:*)", "Bash(git status)"], "test -f a.txt && git status"),
        (&["Bash"], "for i in 1 2; do echo $i > x; done"),
        (&["*"], "rm x"),
    ] {
        let case = Case::new().allow(rules);
        assert_eq!(kind(&case.bash(command)), Kind::Allow, "{command}: {:?}", case.bash(command));
    }
}

#[test]
fn ordinary_commands_under_rules_that_say_more_are_allowed() {
    for (rule, command) in [
        ("Bash(sed -i:*)", "sed -i s/a/b/ x"),
        ("Bash(sed -i -e:*)", "sed -i -e s/a/b/ x"),
        ("Bash(awk -F:*)", "awk -F , '{print $1}' x"),
        ("Bash(awk -v:*)", "awk -v n=1 '{print n}' x"),
        ("Bash(git config --get:*)", "git config --get user.name"),
        ("Bash(git config:*)", "git config --global --list"),
        ("Bash(git config:*)", "git config get user.name"),
        ("Bash(git -C sub:*)", "git -C sub status"),
        ("Bash(git grep:*)", "git grep -n -e fn -- src"),
        ("Bash(git fetch:*)", "git fetch --depth 1 origin main"),
        ("Bash(cargo test:*)", "cargo test -p x -- --nocapture --test-threads=1"),
        ("Bash(uniq:*)", "uniq -c -f 1 a"),
        ("Bash(uniq:*)", "uniq"),
        ("Bash(zip -r:*)", "zip -r x.zip a"),
        ("Bash(split -l:*)", "split -l 10 a"),
        ("Bash(install -m:*)", "install -m 755 a b"),
        ("Bash(find . -name:*)", "find . -name '*.rs'"),
    ] {
        let case = Case::new().allow(&[rule]);
        assert_eq!(kind(&case.bash(command)), Kind::Allow, "{command}: {:?}", case.bash(command));
    }
}

#[track_caller]
fn allowed(rules: &[&str], commands: &[&str]) {
    for command in commands {
        let case = Case::new().allow(rules);
        assert_eq!(kind(&case.bash(command)), Kind::Allow, "{rules:?}: {command}");
    }
}

#[track_caller]
fn refused(rules: &[&str], commands: &[&str]) {
    for command in commands {
        let case = Case::new().allow(rules);
        assert_eq!(kind(&case.bash(command)), Kind::Deny, "{rules:?}: {command}");
    }
}

#[test]
fn a18_every_command_of_a_line_is_judged() {
    refused(
        &["Bash(git diff:*)", "Bash(echo:*)"],
        &[
            "git diff && rm x",
            "git diff; rm x",
            "git diff || rm x",
            "git diff | sh",
            "git diff & rm x",
            "git diff\nrm x",
            "git diff > out",
            "git diff >> out",
            "git diff |& tee x",
            "! rm x",
            "(git diff)",
            "{ git diff; }",
            "git difftool",
            "gitdiff",
            "git  'diff' x > y",
            "git",
            "git diff <(rm x)",
            "git diff; ; rm x",
            "if git diff; then rm x; fi",
            "echo a 2> b",
            "git -c x=y diff",
            "git --exec-path=. diff",
            "echo x >&y",
            "echo x &> y",
            "",
            "   ",
            "# nothing",
            "echo 'open",
            "echo a; }",
            "echo a )",
            "coproc rm x",
            "case x in x) rm y;; esac",
        ],
    );
}

#[test]
fn a19_a20_what_the_shell_would_run_within_words_is_not_allowed() {
    refused(
        &["Bash(echo:*)", "Bash(printf:*)", "Bash(read:*)", "Bash(test:*)", "Bash([[:*)"],
        &[
            "echo $(rm x)",
            "echo `rm x`",
            "echo \"$(rm x)\"",
            "echo \"`rm x`\"",
            "echo <(rm x)",
            "echo ${x:-$(rm y)}",
            "echo $((a[$(rm x)]))",
            "[[ a[$(rm x)] -eq 0 ]]",
            "printf -v 'a[$(rm x)]' y",
            "read 'a[$(rm x)]' <<< y",
            "test -v 'a[$(rm x)]'",
            "echo ${x@P}",
            "echo $[1+1]",
            "echo \"${x}\"",
            "echo <<EOF\n$(rm x)\nEOF",
        ],
    );
}

#[test]
fn a21_variables_and_splitting_are_not_allowed() {
    refused(
        &["Bash(rm:*)", "Bash(cat:*)", "Bash(echo:*)", "Bash(sort:*)"],
        &[
            "cat$IFS/etc/passwd",
            "$x",
            "${x} y",
            "cat $x",
            "echo $HOME",
            "ec$x hi",
            "sort -ko x",
            "cat {a,b}",
            "c{a,}t x",
            "echo {1..3}",
        ],
    );
}

#[test]
fn options_of_programs_that_are_not_known_are_not_allowed_by_the_name_alone() {
    let rules = [
        "pip",
        "openssl",
        "dpkg",
        "apt-get",
        "iconv",
        "ssh-keygen",
        "strip",
        "mvn",
        "ss",
        "mytool",
    ];
    let rules: Vec<String> = rules.iter().map(|name| format!("Bash({name}:*)")).collect();
    let rules: Vec<&str> = rules.iter().map(String::as_str).collect();
    refused(
        &rules,
        &[
            "pip --python ./evil.sh list",
            "pip list --log out",
            "openssl dgst -engine ./x.so",
            "openssl rand -out x 8",
            "dpkg --pre-invoke=./x -i y",
            "apt-get -o APT::Update::Pre-Invoke::=./x update",
            "iconv -o out in",
            "ssh-keygen -f x",
            "strip -o x y",
            "mvn -l out test",
            "ss -D out",
            "mytool run --hook ./x",
        ],
    );
    allowed(&rules, &["mytool run x", "iconv in", "mvn test"]);
    let more = ["Bash(mytool check:*)", "Bash(ls:*)", "Bash(pytest:*)", "Bash(tsc:*)"];
    allowed(
        &more,
        &["mytool check --all x", "ls -la src", "pytest -xvs --cov=src", "tsc --noEmit"],
    );
    refused(&more, &["mytool --all check"]);
}

#[test]
fn no_rule_about_printing_the_date_or_the_name_of_the_machine_sets_them() {
    let rules = ["Bash(date:*)", "Bash(hostname:*)"];
    let plain = ["date", "date -u +%F", "date -d tomorrow +%s", "date -ur a", "hostname -f"];
    allowed(&rules, &plain);
    let setting = [
        "date 010100002020",
        "date -u 010100002020",
        "date +%F 010100002020",
        "date -d now 010100002020",
        "date $x",
        "date -s now",
        "date --se=now",
        "hostname evil",
        "hostname -F a",
        "hostname $x",
    ];
    refused(&rules, &setting);
}

#[test]
fn a22_to_a24_options_that_run_or_write_are_not_allowed() {
    refused(
        &[
            "Bash(rg:*)",
            "Bash(sed:*)",
            "Bash(find:*)",
            "Bash(sort:*)",
            "Bash(tar tf:*)",
            "Bash(fd:*)",
            "Bash(man:*)",
            "Bash(less:*)",
            "Bash(vim:*)",
            "Bash(cp:*)",
            "Bash(make:*)",
        ],
        &[
            "rg --pre ./x y",
            "rg --pre=./x y",
            "rg --pr ./x y",
            "rg --hostname-bin x y",
            "sed -i s/a/b/ x",
            "sed 'w out' x",
            "sed -n --in-place p x",
            "sed s/a/b/w",
            "find . -exec rm {} +",
            "find . -delete",
            "find . -fls x",
            "find . -okdir x ';'",
            "sort -o x y",
            "sort --outp=x y",
            "sort --compress-program=./x y",
            "sort -uo x y",
            "tar tf a --to-command=x",
            "tar tf a --checkpoint-action=exec=x",
            "tar tf a -I x",
            "fd -x rm",
            "fd --exec rm",
            "man -P x y",
            "less x",
            "vim x",
            "cp a b",
            "make SHELL=./x",
            "make -C /tmp",
            "make --eval=x",
            "rg *",
            "find *.txt",
            "rg -* x",
        ],
    );
}

#[test]
fn a22_to_a24_what_looks_like_the_end_of_options_may_be_the_value_of_one() {
    for (rules, command) in [
        (&["Bash(find:*)", "Bash(find . -name:*)"][..], "find . -name -- -exec touch c \\;"),
        (&["Bash(find:*)"], "find . -maxdepth 0 ! -name -- -exec touch c \\;"),
        (&["Bash(git grep:*)", "Bash(git:*)"], "git grep -e -- -O'touch c;true' -e hello"),
        (
            &["Bash(git ls-remote:*)", "Bash(git:*)"],
            "git ls-remote -o -- --upload-pack='touch c;true' .",
        ),
        (&["Bash(git fetch:*)"], "git fetch -o -- --upload-pack='touch c;true' ."),
        (&["Bash(git push:*)"], "git push -o -- --receive-pack='touch c;true' . HEAD"),
        (&["Bash(git push -o:*)"], "git push -o -- --receive-pack='touch c;true' . HEAD"),
        (&["Bash(curl:*)"], "curl -H -- -o c file:///etc/hostname"),
        (&["Bash(sort:*)"], "sort --random-source -- -o c a"),
    ] {
        refused(rules, &[command]);
    }
}

#[test]
fn a22_to_a24_what_a_rule_spells_out_does_not_hide_what_follows() {
    for (rule, command) in [
        ("Bash(awk -F:*)", "awk -F , 'BEGIN{system(\"touch c\")}'"),
        ("Bash(awk -F ,:*)", "awk -F , 'BEGIN{system(\"touch c\")}'"),
        ("Bash(awk -v:*)", "awk -v a=b 'BEGIN{system(\"touch c\")}'"),
        ("Bash(awk -f:*)", "awk -f x"),
        ("Bash(sed -n:*)", "sed -n '1e touch c' a"),
        ("Bash(sed -e:*)", "sed -e '1e touch c' a"),
        ("Bash(sed -e p:*)", "sed -e p -e '1e touch c' a"),
        ("Bash(sed -f:*)", "sed -f x a"),
        ("Bash(uniq:*)", "uniq a c"),
        ("Bash(uniq a:*)", "uniq a c"),
        ("Bash(uniq:*)", "uniq -- -f 1"),
        ("Bash(uniq:*)", "uniq src/*"),
        ("Bash(split -l:*)", "split -l 1 --filter='touch c' a"),
        ("Bash(split -l 1:*)", "split -l 1 --filt='touch c' a"),
        ("Bash(zip -r:*)", "zip -r x.zip a -T -TT 'touch c #'"),
        ("Bash(zip -r:*)", "zip -r x.zip a -T --unzip-command 'touch c #'"),
        ("Bash(install -m:*)", "install -m 755 -s --strip-program=./x a b"),
        ("Bash(git config:*)", "git config --file c core.pager evil list"),
        ("Bash(git config:*)", "git config --file --get core.pager evil"),
        ("Bash(git config --file:*)", "git config --file c core.pager evil --list"),
        ("Bash(git -C .:*)", "git -C . -c alias.x='!touch c' x"),
        ("Bash(git -C .:*)", "git -C . config core.pager evil"),
        ("Bash(wget:*)", "wget --output-document=c http://localhost"),
        ("Bash(dc:*)", "dc -e '!touch c'"),
        ("Bash(yq:*)", "yq -i .a=1 c"),
    ] {
        refused(&[rule], &[command]);
    }
}

#[test]
fn a25_the_shell_s_own_ways_to_write_are_not_allowed() {
    refused(&["Bash(echo:*)"], &["echo x >| y", "echo x >! y", "echo x 1<>y", "echo x {fd}>y"]);
}

#[test]
fn a26_many_commands_or_much_text_are_never_a_way_around_a_denial() {
    let many = format!("{}rm x", "echo a; ".repeat(200));
    let long = format!("echo {}; rm x", "a".repeat(50_000));
    let deep = format!("echo {}rm x{}", "$(".repeat(60), ")".repeat(60));
    for command in [&many, &long, &deep] {
        let case = Case::new().mode(Mode::Bypass).deny(&["Bash(rm:*)"]);
        assert_eq!(kind(&case.bash(command)), Kind::Deny);
        assert_eq!(
            kind(&Case::new().allow(&["Bash(echo:*)", "Bash(rm x)"]).bash(command)),
            Kind::Deny
        );
    }
    let within = format!("{}echo b", "echo a; ".repeat(40));
    check(&Case::new().allow(&["Bash(echo:*)"]).bash(&within), Kind::Allow);
}

#[test]
fn a27_variables_that_decide_what_runs_are_not_allowed() {
    refused(
        &["Bash(ls:*)", "Bash(git:*)", "Bash(export:*)", "Bash(declare:*)", "Bash(env:*)"],
        &[
            "PATH=.:$PATH ls",
            "A=b ls",
            "A=b",
            "export PATH=.; ls",
            "declare -x A=b",
            "LD_PRELOAD=x ls",
            "GIT_SSH_COMMAND=x git status",
            "env A=b ls",
            "typeset -x A=b",
            "A+=b ls",
            "a[0]=b ls",
        ],
    );
}

#[test]
fn a28_what_runs_its_arguments_is_not_allowed_for_what_it_runs() {
    refused(
        &[
            "Bash(env:*)",
            "Bash(nice:*)",
            "Bash(timeout:*)",
            "Bash(xargs:*)",
            "Bash(nohup:*)",
            "Bash(script:*)",
            "Bash(sudo:*)",
            "Bash(command:*)",
            "Bash(exec:*)",
            "Bash(builtin:*)",
            "Bash(stdbuf:*)",
            "Bash(time:*)",
            "Bash(bash:*)",
            "Bash(python3:*)",
            "Bash(eval:*)",
            "Bash(npx:*)",
            "Bash(watch:*)",
            "Bash(ssh:*)",
        ],
        &[
            "env -S 'rm x'",
            "env rm x",
            "nice rm x",
            "timeout 5 rm x",
            "timeout -s KILL 5 rm x",
            "echo x | xargs rm",
            "nohup rm x",
            "script -c 'rm x'",
            "sudo rm x",
            "command rm x",
            "exec rm x",
            "builtin eval x",
            "stdbuf -oL rm x",
            "time rm x",
            "bash -c 'rm x'",
            "bash x.sh",
            "python3 x.py",
            "python3 -c x",
            "eval x",
            "npx x",
            "watch rm x",
            "ssh host x",
        ],
    );
}

#[test]
fn a29_patterns_that_could_become_options_are_not_allowed() {
    refused(
        &["Bash(head:*)", "Bash(ls:*)"],
        &["head *", "head ?", "ls -*", "head [a-z]*", "ls ~root"],
    );
    check(&Case::new().allow(&["Bash(head:*)"]).bash("head src/*"), Kind::Allow);
}

#[test]
fn a30_a_program_by_another_name_is_another_program() {
    refused(
        &["Bash(ls:*)", "Bash(git:*)"],
        &[
            "/proc/self/root/bin/ls",
            "./ls",
            "/tmp/git status",
            "/lib64/ld-linux-x86-64.so.2 /bin/ls",
        ],
    );
}

#[test]
fn a31_git_does_not_run_or_write_what_its_options_say() {
    refused(
        &["Bash(git:*)"],
        &[
            "git -c alias.x='!rm y' x",
            "git -c core.fsmonitor=x status",
            "git config a.b c",
            "git y",
            "git commit -m x",
            "git push",
            "git diff --output=x",
            "git diff --outp x",
            "git grep -Ox y",
            "git grep --open-files-in-pager=x y",
            "git archive -o x HEAD",
            "git -C /tmp status",
            "git log --ext-diff",
            "git show --textconv x",
            "git clone ext::x",
            "git $x",
            "git --git-dir=x status",
            "git difftool -x y",
            "git rebase -x y",
            "git submodule foreach x",
        ],
    );
    refused(
        &[
            "Bash(git fetch:*)",
            "Bash(git ls-remote:*)",
            "Bash(git clone:*)",
            "Bash(git rebase:*)",
            "Bash(git config:*)",
            "Bash(git bisect:*)",
            "Bash(git archive:*)",
            "Bash(git diff:*)",
        ],
        &[
            "git fetch --upload-pack=x",
            "git ls-remote ext::x",
            "git clone -c x=y u",
            "git rebase -x y",
            "git rebase --exec y",
            "git config alias.x '!y'",
            "git bisect run x",
            "git archive -o x H",
            "git archive --output=x",
            "git diff --output x",
            "git fetch ssh://-oProxyCommand=x/y",
        ],
    );
    let case = Case::new().allow(&["Bash(git config:*)"]);
    check(&case.bash("git config --get user.name"), Kind::Allow);
}

#[test]
fn a34_commands_with_signs_that_nobody_sees_are_not_allowed() {
    refused(
        &["Bash(echo:*)", "Bash(rm:*)"],
        &[
            "echo a\u{200b}",
            "echo \u{202e}b",
            "echo\u{a0}x",
            "echo a\r\nrm x",
            "echo a\0",
            "еcho x",
            "echo \u{e0041}",
            "echo \u{1b}[2J",
        ],
    );
    let case = Case::new().mode(Mode::Bypass).deny(&["Bash(rm:*)"]);
    check(&case.bash("r\u{200b}m x"), Kind::Deny);
}

/// True when bash itself can parse `command`.
fn bash_reads(command: &str) -> bool {
    let mut child = Command::new("bash")
        .args(["--norc", "-n"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(command.as_bytes()).unwrap();
    child.wait().unwrap().success()
}

/// Returns the words of a simple command as bash expands them.
fn bash_words(command: &str) -> Vec<String> {
    let script = format!("printf '%s\\0' {command}");
    let output = Command::new("bash").args(["--norc", "-c", &script]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    text.split_terminator('\0').map(str::to_owned).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    #[test]
    fn nothing_that_is_read_makes_the_parser_fail(text in "\\PC{0,60}|[ab$(){}`'\"\\\\;&|<>*?\\[\\]!#~=\n -]{0,40}") {
        let _ = super::super::command::Command::parse(&text);
        let _ = Rule::parse(&text);
        let _ = Rule::parse(&format!("Bash({text})"));
        let _ = Rule::parse(&format!("Read({text})"));
    }

    #[test]
    fn what_is_allowed_is_what_bash_reads(text in "echo [ab$(){}`'\"\\\\;&|<>*?\\[\\]!#~=\n -]{0,14}") {
        let case = Case::new().allow(&["Bash(echo:*)", "Bash(a:*)", "Bash(b:*)"]);
        if kind(&case.bash(&text)) == Kind::Allow {
            prop_assert!(bash_reads(&text), "{text:?}");
        }
    }

    #[test]
    fn words_are_those_of_bash(text in "[ab'\"\\\\ -]{1,14}") {
        let command = super::super::command::Command::parse(&format!("echo {text}"));
        let Some(words) = command.only() else { return Ok(()) };
        let ours: Option<Vec<&str>> = words[1..].iter().map(shell::Word::exact).collect();
        if let Some(ours) = ours.filter(|ours| !ours.is_empty()) {
            prop_assert_eq!(ours, bash_words(&text));
        }
    }
}
