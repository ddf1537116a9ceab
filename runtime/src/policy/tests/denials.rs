//! Commands that a denial matches in any spelling, and commands that it does not match.

use super::*;

#[test]
fn what_a_rule_denies_is_found_however_it_is_written() {
    for (rule, command) in [
        ("Bash(rm:*)", "rm x"),
        ("Bash(rm:*)", "/bin/rm x"),
        ("Bash(rm:*)", "r\\m x"),
        ("Bash(rm:*)", "'rm' x"),
        ("Bash(rm:*)", "echo a; rm x"),
        ("Bash(rm:*)", "echo a && (cd b; rm x)"),
        ("Bash(rm:*)", "echo $(rm x)"),
        ("Bash(rm:*)", "echo \"`rm x`\""),
        ("Bash(rm:*)", "A=b rm x"),
        ("Bash(rm:*)", "if true; then rm x; fi"),
        ("Bash(rm:*)", "for i in 1; do rm x; done"),
        ("Bash(rm:*)", "f(){ rm x; }; f"),
        ("Bash(rm:*)", "cat <<EOF\n$(rm x)\nEOF"),
        ("Bash(rm:*)", "sudo -u ada rm x"),
        ("Bash(rm:*)", "env A=b rm x"),
        ("Bash(rm:*)", "ls | xargs -n 1 rm"),
        ("Bash(rm:*)", "find . -exec rm {} +"),
        ("Bash(rm:*)", "bash -c 'ls; rm x'"),
        ("Bash(rm:*)", "eval 'rm x'"),
        ("Bash(rm:*)", "sh -c \"sh -c 'rm x'\""),
        ("Bash(rm:*)", "timeout 5 nice rm x"),
        ("Bash(rm:*)", "bash -c 'r\\m${IFS}x'"),
        ("Bash(rm:*)", "env bash -c '\"rm\"'"),
        ("Bash(rm:*)", "eval '$x'"),
        ("Bash(rm:*)", "sh -c 'true;rm${IFS}x'"),
        ("Bash(rm:*)", "a=r;b=m;$a$b x"),
        ("Bash(rm:*)", "$'\\x72m' x"),
        ("Bash(rm:*)", "python3 -c 'import os'"),
        ("Bash(rm:*)", "awk 'BEGIN{system(\"rm x\")}'"),
        ("Bash(rm:*)", "git -c alias.x='!rm y' x"),
        ("Bash(rm:*)", "case x in x) rm y;; esac"),
        ("Bash(rm:*)", "[[ a[$(rm x)] -eq 0 ]]"),
        ("Bash(rm:*)", "x='a[$(rm y)]'; echo $((x))"),
        ("Bash(rm:*)", "a[1 + 1]=x rm y"),
        ("Bash(rm:*)", "a[ 1 ]=x rm y"),
        ("Bash(rm:*)", "a[1|2]+=x rm y"),
        ("Bash(rm:*)", "a[1>0]=x rm y"),
        ("Bash(rm:*)", "a[1&&1]=x rm y"),
        ("Bash(rm:*)", "a[1;1]=x rm y"),
        ("Bash(rm:*)", "a[1\n+1]=x rm y"),
        ("Bash(rm:*)", "a[b[1] + 1]=x rm y"),
        ("Bash(rm:*)", "a[(1)]=x rm y"),
        ("Bash(rm:*)", "a[\"1\" + 1]=x rm y"),
        ("Bash(rm:*)", "a['1 + 1']=x rm y"),
        ("Bash(rm:*)", "a[$((1 + 1))]=x rm y"),
        ("Bash(rm:*)", "a[${b:-1 2}]=x rm y"),
        ("Bash(rm:*)", "x=1 a[1 + 1]=x rm y"),
        ("Bash(rm:*)", "declare a[1 + 1]=x; rm y"),
        ("Bash(rm:*)", "jobs -x rm y"),
        ("Bash(rm:*)", "x86_64 rm y"),
        ("Bash(rm:*)", "i386 rm y"),
        ("Bash(rm -rf:*)", "rm -fr x"),
        ("Bash(rm -rf:*)", "rm -r -f x"),
        ("Bash(rm -rf:*)", "rm --recursive --force x"),
        ("Bash(git push:*)", "git -C x push"),
        ("Bash(git push:*)", "git -c a=b push --force"),
        ("Bash(git push:*)", "git --no-pager push"),
        ("Bash(git push)", "git push --force"),
        ("Bash(docker compose down:*)", "docker compose -f x down"),
        ("Bash(npm run deploy)", "npm run $x"),
    ] {
        let case = Case::new().mode(Mode::Bypass).deny(&[rule]);
        assert_eq!(kind(&case.bash(command)), Kind::Deny, "{rule}: {command}");
        // In an attended run, Posse at least asks.
        let asked = Case::new().mode(Mode::Bypass).deny(&[rule]).attended();
        assert_ne!(kind(&asked.bash(command)), Kind::Allow, "{rule}: {command}");
        let asked = Case::new().mode(Mode::Bypass).ask(&[rule]).attended();
        assert_eq!(kind(&asked.bash(command)), Kind::Ask, "{rule}: {command}");
    }
}

#[test]
fn what_a_rule_denies_is_not_done_through_the_input_or_the_language_of_another_program() {
    for command in [
        "echo 'rm F' | bash",
        "bash <<< 'rm F'",
        "sh -s <<< 'rm F'",
        "sh -s x <<< 'rm F'",
        "bash -O extglob <<< 'rm F'",
        "bash - <<< 'rm F'",
        "bash -eo pipefail <<< 'rm F'",
        "bash -es x <<< 'rm F'",
        "script -q /dev/null <<< 'rm F'",
        "sudo -s <<< 'rm F'",
        "unshare <<< 'rm F'",
        "bash /dev/stdin <<< 'rm F'",
        "env bash <<< 'rm F'",
        "source /dev/stdin <<< 'rm F'",
        ". /dev/fd/0 <<< 'rm F'",
        "python3 <<E\nimport os\nE",
        "echo 'x' | python3",
        "echo 'x' | python3 -W ignore -",
        "node -p 'x'",
        "node --eval='x'",
        "php -r 'x'",
        "env '-Srm F'",
        "env --split-string='rm F'",
        "script '-crm F' /dev/null",
        "tar --use-compress-program='rm F' -cf x y",
        "sed '1e rm F' x",
        "sed -i 's/.*/rm F/e' x",
        "sed -i -f x y",
        "sed \"$x\" y",
        "sort --compress-program=./x y",
        "make SHELL=./x",
        "awk -f x y",
        "awk 'BEGIN{print \"rm F\" | \"sh\"}'",
        "awk 'BEGIN{\"rm F\" | getline}'",
        "awk 'BEGIN{print 1 || 2; print \"rm F\" |& \"sh\"}'",
        "curl -K x",
        "gdb -batch -ex 'shell rm F'",
        "vim -c '!rm F'",
        "ed <<< '!rm F'",
        "ssh -o ProxyCommand='rm F' h",
        "xargs -I % sh -c % <<< 'rm F'",
        "xargs env <<< 'rm F'",
        "echo rm F | parallel",
        "setarch x86_64 rm F",
        "uv run rm F",
    ] {
        let case = Case::new().mode(Mode::Bypass).deny(&["Bash(rm:*)"]);
        assert_eq!(kind(&case.bash(command)), Kind::Deny, "{command}");
        let asked = Case::new().mode(Mode::Bypass).deny(&["Bash(rm:*)"]).attended();
        assert_ne!(kind(&asked.bash(command)), Kind::Allow, "{command}");
    }
}

#[test]
fn what_a_rule_denies_is_not_done_by_a_program_whose_path_does_not_name_it() {
    for command in [
        "exec 5</bin/rm; /dev/fd/5 F",
        "exec 5</bin/rm; /dev//fd/./5 F",
        "exec 5</bin/rm; /proc/self/fd/5 F",
        "exec 5</bin/rm; /proc/$$/fd/5 F",
        "exec 5</bin/rm; ../../proc/self/fd/5 F",
        "exec 5</bin/rm; cd /; dev/fd/5 F",
        "exec 5</bin/rm; /dev/f?/5 F",
        "exec 5</bin/rm; /dev/$x/5 F",
        "exec {n}</bin/rm; /dev/fd/$n F",
        "exec {n}</bin/rm; \"/dev/fd/$n\" F",
        "ln -s /dev d; exec 5</bin/rm; d/fd/5 F",
        "/dev/stdin F < /bin/rm",
        "env /dev/fd/5 F 5</bin/rm",
        "nice /dev/fd/5 F 5</bin/rm",
        "bash -c '/dev/fd/5 F' 5</bin/rm",
        "/proc/self/cwd/x F",
        "/proc/1/map_files/y F",
    ] {
        let case = Case::new().mode(Mode::Bypass).deny(&["Bash(rm:*)"]);
        assert_eq!(kind(&case.bash(command)), Kind::Deny, "{command}");
        let asked = Case::new().mode(Mode::Bypass).deny(&["Bash(rm:*)"]).attended();
        assert_ne!(kind(&asked.bash(command)), Kind::Allow, "{command}");
    }
}

#[test]
fn a_denial_says_nothing_about_what_it_does_not_mean() {
    for (rule, command) in [
        ("Bash(rm:*)", "ls rm"),
        ("Bash(rm:*)", "a=tou;b=ch;$a$b x"),
        ("Bash(rm:*)", "echo 'rm x' && git rm"),
        ("Bash(rm:*)", "for f in *.rs; do wc -l $f; done"),
        ("Bash(rm:*)", "if [ -f x ]; then cat x; else echo none; fi > out"),
        ("Bash(rm:*)", "X=1 make test"),
        ("Bash(rm:*)", "cat <<'EOF' > x\nrm y $(rm z)\nEOF"),
        ("Bash(rm:*)", "awk '{print $1}' x | sort"),
        ("Bash(rm:*)", "python3 x.py"),
        ("Bash(rm:*)", "python3 -u -m pytest -p no:cache -r a"),
        ("Bash(rm:*)", "python3 --version && command -v node"),
        ("Bash(rm:*)", "bash -x scripts/test.sh a"),
        ("Bash(rm:*)", "bash -eo pipefail scripts/test.sh -s"),
        ("Bash(rm:*)", "python3 -O x.py && sudo -n true"),
        ("Bash(rm:*)", "ls | xargs -n 1 wc -l"),
        ("Bash(rm:*)", "npx eslint ."),
        ("Bash(rm:*)", "src/proc/build x; tools/fd/run; fd x; ./5"),
        ("Bash(rm:*)", "cat /dev/fd/5 /proc/meminfo; ls /proc/self/fd"),
        ("Bash(curl:*)", "sed -i s/foo/bar/ a.py"),
        ("Bash(curl:*)", "sed -i.bak -E 's/(a|b)/[\\1]/g; /^#/d' *.py"),
        ("Bash(curl:*)", "for f in *.py; do sed -i s/foo/bar/ \"$f\"; done"),
        ("Bash(curl:*)", "sort -u x -o x && uniq x y && tree -o z"),
        ("Bash(rm:*)", "curl -sSfL -o x https://example.org && make -C sub test"),
        ("Bash(rm:*)", "awk -F: '$3 > 5 || /x/ {print $1 > \"out\"}' x"),
        ("Bash(rm:*)", "cargo test --manifest-path sub/Cargo.toml"),
        ("Bash(rm:*)", "docker run -e A='b c' x"),
        ("Bash(git push:*)", "git log --grep push"),
        ("Bash(git push:*)", "git commit -m push"),
        ("Bash(git push:*)", "git stash push"),
        ("Bash(rm -rf:*)", "rm x"),
        ("Bash(npm run deploy)", "npm run build"),
    ] {
        let case = Case::new().mode(Mode::Bypass).deny(&[rule]);
        assert_eq!(
            kind(&case.bash(command)),
            Kind::Allow,
            "{rule}: {command}: {:?}",
            case.bash(command)
        );
    }
}

/// The number of ways to skip options and their values doubles with each option.
#[test]
fn a_command_of_very_many_options_is_judged() {
    let options = " -x --y".repeat(400);
    let case = || Case::new().mode(Mode::Bypass).deny(&["Bash(* --force)", "Bash(git push:*)"]);
    assert_eq!(kind(&case().bash(&format!("ls{options}"))), Kind::Allow);
    assert_eq!(kind(&case().bash(&format!("ls{options} --force"))), Kind::Deny);
    assert_eq!(kind(&case().bash(&format!("git{options} push"))), Kind::Deny);
}
