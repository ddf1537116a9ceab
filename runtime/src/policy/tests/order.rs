//! Which of several rules decides, and what decides if none does.

use super::*;

#[test]
fn denials_go_first_then_what_narrows_then_questions_then_allowances_then_the_mode() {
    let case = Case::new().allow(&["Edit(src/**)"]).attended();
    check(&case.file("Edit", "src/a.rs"), Kind::Allow);
    check(&case.file("Edit", "docs/a.md"), Kind::Ask);
    let case = case.ask(&["Edit(src/secret/**)"]);
    check(&case.file("Write", "src/secret/x"), Kind::Ask);
    let case = case.scope(&["Edit(src/**)"]);
    check(&case.file("Edit", "docs/a.md"), Kind::Deny);
    let case = case.deny(&["Edit(src/secret/**)"]);
    check(&case.file("Write", "src/secret/x"), Kind::Deny);
    check(&case.file("Edit", "src/a.rs"), Kind::Allow);
}

#[test]
fn an_empty_list_allows_nothing_and_a_denial_holds_in_every_mode() {
    for mode in Mode::ALL {
        let case = Case::new().mode(mode).deny(&["Read(.env)", "Bash(rm:*)", "Write"]);
        check(&case.file("Read", "a/.env"), Kind::Deny);
        check(&case.file("Read", "a/../.ENV"), Kind::Deny);
        check(&case.file("Write", "x"), Kind::Deny);
        check(&case.bash("rm x"), Kind::Deny);
        let none = Case::new().mode(mode).scope(&["Bash(git status)"]);
        check(&none.bash("ls"), Kind::Deny);
    }
    check(&Case::new().mode(Mode::DontAsk).bash("make"), Kind::Deny);
}

#[test]
fn nobody_is_asked_about_a_command_that_only_looks() {
    for mode in [Mode::Ask, Mode::DontAsk] {
        let case = || Case::new().mode(mode);
        for command in [
            "ls -la",
            "cat src/lib.rs | head -20",
            "git status --short && git log --oneline -5",
            "grep -rn 'fn main' src | sort | uniq -c",
            "find . -name '*.rs'",
            "git branch",
        ] {
            check(&case().bash(command), Kind::Allow);
        }
        for command in [
            "ls > list",
            "cat a | sh",
            "find . -delete",
            "find . -exec rm {} +",
            "sort -o a a",
            "sort --compress-program=x a",
            "uniq a b",
            "rg --pre x y",
            "git branch new",
            "git diff --output=x",
            "git log --ext-diff",
            "git -c core.pager=x log",
            "PAGER=x git log",
            "cat $(touch x)",
            "ls; make",
            "./ls",
            "cd evil && git status",
            "git -C evil status",
            "cargo --version",
            "diff -l a b",
            "git log --show-signature",
            "date -s 1",
        ] {
            check(&case().bash(command), Kind::Deny);
        }
        check(&case().ask(&["Bash(cat:*)"]).bash("cat a"), Kind::Deny);
        check(&case().deny(&["Bash(git log:*)"]).bash("git log"), Kind::Deny);
        check(&case().scope(&["Bash(npm:*)"]).bash("ls"), Kind::Deny);
        check(&case().allow(&["Bash(npm test)"]).bash("npm test | tail -3"), Kind::Allow);
    }
    // Without a sandbox the mode decides.
    let mut open = Case::new();
    open.grant.reach = Profile::Full;
    check(&open.bash("cat a"), Kind::Deny);
}

#[test]
fn a_call_must_fit_every_list_that_names_its_tool() {
    let case = Case::new().scope(&["Read(src/**)"]).scope(&["Read(**/*.rs)", "Bash(ls:*)"]);
    check(&case.file("Read", "src/a.rs"), Kind::Allow);
    check(&case.file("Read", "src/a.txt"), Kind::Deny);
    check(&case.file("Read", "a.rs"), Kind::Deny);
    check(&case.file("Read", "/w/src/x/../a.rs"), Kind::Allow);
    check(&case.file("Read", "/elsewhere/src/a.rs"), Kind::Deny);
    check(&case.file("List", "src"), Kind::Deny);
    check(&Case::new().scope(&["Read(src/**)"]).file("List", "src"), Kind::Allow);
    check(&Case::new().scope(&["Read(src/**)"]).file("List", "."), Kind::Deny);
    check(&case.judge("Task", json!({"subagent_type": "explore"})), Kind::Allow);
}

#[test]
fn a_run_s_own_folders_are_within_every_list() {
    let mut case = Case::new().scope(&["Read(src/**)", "Edit(src/**)"]).mode(Mode::AcceptEdits);
    case.grant.scratch = Some("/scratch/run".to_owned());
    case.grant.skills.push(SkillOffer {
        name: "pdf".to_owned(),
        description: String::new(),
        path: "/skills/pdf".to_owned(),
        untrusted: Default::default(),
        extra: Extra::default(),
    });
    check(&case.file("Read", "/skills/pdf/SKILL.md"), Kind::Allow);
    check(&case.file("Edit", "/skills/pdf/SKILL.md"), Kind::Deny);
    check(&case.file("Write", "/scratch/run/x"), Kind::Allow);
    check(&case.file("Write", "/scratch/run-evil/x"), Kind::Deny);
}

#[test]
fn what_a_person_allowed_for_the_run_counts_and_never_against_a_denial() {
    let mut case = Case::new().deny(&["Bash(git push:*)"]).attended();
    check(&case.bash("git push"), Kind::Deny);
    check(&case.bash("make x"), Kind::Ask);
    case.standing.approved = list(&["Bash(git:*)", "Bash(make:*)"]);
    check(&case.bash("make x && git status"), Kind::Allow);
    check(&case.bash("git push"), Kind::Deny);
}

#[test]
fn what_a_skill_narrows_to_holds_for_every_tool() {
    let mut case = Case::new().mode(Mode::Bypass);
    case.standing.narrowed = vec![list(&["Read(src/**)", "Bash(git diff:*)"])];
    check(&case.file("Read", "src/a"), Kind::Allow);
    check(&case.file("Read", "b"), Kind::Deny);
    check(&case.file("Grep", "."), Kind::Deny);
    check(&case.file("Grep", "src"), Kind::Allow);
    check(&case.bash("git diff x"), Kind::Allow);
    check(&case.bash("git diff > x"), Kind::Deny);
    check(&case.file("Write", "src/a"), Kind::Deny);
    check(&case.judge("Task", json!({"subagent_type": "explore"})), Kind::Deny);
    check(&case.judge("TodoWrite", json!({"todos": []})), Kind::Allow);
    check(&case.judge("Skill", json!({"skill": "x"})), Kind::Allow);
    case.standing.narrowed = vec![list(&["Read(src/**"])];
    check(&case.file("Read", "src/a"), Kind::Deny);
}

#[test]
fn rules_about_agents_skills_hosts_and_servers() {
    let case = Case::new()
        .attended()
        .deny(&["Task(plan)", "Skill(danger)", "mcp__files__drop"])
        .allow(&["WebFetch(domain:*.example.org)", "WebFetch(domain:a.net)", "mcp__files"]);
    let task = |name: &str| case.judge("Task", json!({"subagent_type": name}));
    check(&task("explore"), Kind::Allow);
    check(&task("Plan"), Kind::Deny);
    check(&case.judge("Task", json!({"agent": "plan"})), Kind::Deny);
    check(&case.judge("Task", json!({"prompt": "x"})), Kind::Ask);
    check(&case.judge("spawn_subagent", json!({"agentId": "plan"})), Kind::Deny);
    check(&case.judge("Skill", json!({"skill": "/office:DANGER"})), Kind::Deny);
    check(&case.judge("mcp__files__drop", json!({})), Kind::Deny);
    check(&case.judge("mcp__files__read", json!({})), Kind::Allow);
    check(&case.judge("mcp__files2__read", json!({})), Kind::Ask);
    for (url, expected) in [
        ("https://x.example.org/a", Kind::Allow),
        ("https://X.EXAMPLE.org./a", Kind::Allow),
        ("http://a.net", Kind::Allow),
        ("https://example.org", Kind::Ask),
        ("https://evilexample.org", Kind::Ask),
        ("https://x.example.org.evil.net", Kind::Ask),
        ("https://x.example.org@evil.net", Kind::Ask),
        ("ftp://a.net", Kind::Ask),
        ("nonsense", Kind::Ask),
    ] {
        let ruling = case.judge("WebFetch", json!({"url": url}));
        assert_eq!(kind(&ruling), expected, "{url}: {ruling:?}");
    }
}

#[test]
fn a_question_offers_a_rule_that_would_allow_the_call() {
    let case = Case::new().attended();
    let offered = |tool: &str, input: Value| match case.judge(tool, input) {
        Ruling::Ask { rule, .. } => rule,
        other => panic!("{other:?}"),
    };
    let bash = |command: &str| offered("Bash", json!({"command": command}));
    assert_eq!(bash("git commit -m 'a b'").as_deref(), Some("Bash(git commit:*)"));
    assert_eq!(bash("mkdir -p a").as_deref(), Some("Bash(mkdir:*)"));
    assert_eq!(bash("cp a 'b c'").as_deref(), Some("Bash(cp a 'b c')"));
    assert_eq!(bash("python3 -c 'it'\"'\"'s'").as_deref(), Some("Bash(python3 -c 'it'\\''s')"));
    for (command, rule) in [
        ("npm install x", "npm install x"),
        ("npm run lint", "npm run lint"),
        ("/usr/bin/env ls", "/usr/bin/env ls"),
        ("/opt/x/tool a", "/opt/x/tool a"),
        ("yarn build", "yarn build"),
        ("yarn list x", "yarn list x"),
        ("uv run x.py", "uv run x.py"),
        ("uv sync", "uv sync:*"),
        ("poetry run x", "poetry run x"),
        ("bundle exec rake", "bundle exec rake"),
        ("docker run x", "docker run x"),
        ("go run x.go", "go run x.go"),
        ("go build ./x", "go build:*"),
        ("just deploy", "just deploy"),
        ("aws s3 ls", "aws s3 ls"),
        ("gcloud compute ssh x", "gcloud compute ssh x"),
        ("gh pr view", "gh pr view:*"),
        ("systemctl restart x", "systemctl restart x"),
        ("apt-get install x", "apt-get install x"),
    ] {
        assert_eq!(bash(command), Some(format!("Bash({rule})")), "{command}");
    }
    assert_eq!(bash("git diff > x"), None);
    assert_eq!(bash("a && b"), None);
    let edit = |path: &str| offered("Edit", json!({"file_path": path}));
    assert_eq!(edit("src/[a].rs").as_deref(), Some("Edit(/src/\\[a].rs)"));
    assert_eq!(edit("a.txt").as_deref(), Some("Edit(/a.txt)"));
    assert_eq!(offered("deploy", json!({})).as_deref(), None);
}

#[test]
fn nobody_to_ask_is_a_refusal_that_says_so() {
    let Ruling::Deny { reason, .. } = Case::new().bash("make") else { panic!("not refused") };
    assert!(reason.contains("no person can answer here"), "{reason}");
    let case = Case::new().allow(&["Bash(cp:*)"]).attended();
    let Ruling::Ask { by, .. } = case.bash("cp a b") else { panic!("not asked") };
    assert!(by.contains("`Bash(cp:*)` does not allow it: it leaves open what `cp` writes"), "{by}");
}

#[test]
fn a_rule_that_names_inline_code_settles_what_it_may_run() {
    let case = |allow: &str| {
        Case::new()
            .mode(Mode::AcceptEdits)
            .deny(&["Bash(curl:*)", "Bash(git push:*)"])
            .allow(&[allow])
    };
    for (allow, command) in [
        ("Bash(python3 -c:*)", "python3 -c 'print(1)'"),
        ("Bash(python3 -c:*)", "timeout 5 python3 -c \"$code\" && ls"),
        ("Bash(python3 -c 'print(1)')", "python3 -c 'print(1)'"),
        ("Bash(python3:*)", "python3 - <<'E'\nprint(1)\nE"),
        ("Bash(python3 -:*)", "python3 - <<'E'\nprint(1)\nE"),
        ("Bash(node -e:*)", "node -e 'x' | sort"),
        ("Bash(perl -ne:*)", "perl -ne 'print' x"),
        ("Bash(bash -c:*)", "bash -c '$x'"),
    ] {
        check(
            &Case::new().mode(Mode::AcceptEdits).deny(&["Bash(curl:*)"]).bash(command),
            Kind::Deny,
        );
        check(&case(allow).bash(command), Kind::Allow);
        let asks = Case::new().mode(Mode::AcceptEdits).ask(&["Bash(curl:*)"]).allow(&[allow]);
        check(&asks.bash(command), Kind::Allow);
        check(&case("Bash").bash(command), Kind::Deny);
        check(&case("Bash(ls:*)").bash(command), Kind::Deny);
    }
    // A certain denial still applies, and so does one for words that the rule leaves open.
    for (allow, command) in [
        ("Bash(python3 -c:*)", "python3 -c 'x' && curl y"),
        ("Bash(python3 -c:*)", "python3 -c \"$(curl y)\""),
        ("Bash(python3 -c:*)", "python3 -c 'x' | bash"),
        ("Bash(python3 -c:*)", "python3 -c 'x'; node -e 'y'"),
        ("Bash(python3 -c:*)", "xargs python3 -c 'x'"),
        ("Bash(bash -c:*)", "bash -c 'curl x'"),
        ("Bash(bash -c:*)", "bash -c 'git $x'"),
        ("Bash(git:*)", "git -c alias.x='!git push' x"),
        ("Bash(git:*)", "git $x"),
        ("Bash(awk:*)", "awk 'BEGIN{system(\"x\")}'"),
    ] {
        assert_eq!(kind(&case(allow).bash(command)), Kind::Deny, "{allow}: {command}");
    }
}

#[test]
fn a_refusal_of_what_may_be_meant_names_the_rule_its_file_and_what_to_do() {
    let mut case = Case::new().mode(Mode::AcceptEdits).deny(&["Bash(curl:*)"]);
    case.files.insert("Bash(curl:*)".to_owned(), ".claude/settings.json".to_owned());
    let Ruling::Deny { reason, .. } = case.bash("ls && python3 -c 'import os'") else {
        panic!("not refused")
    };
    assert_eq!(
        reason,
        "not run: `python3 -c import os` could start `curl`, which the rule `Bash(curl:*)` of \
         .claude/settings.json denies, and no person can answer here; do it in another way, or say \
         what you could not do; the user can permit it with --allow \
         'Bash(python3 -c:*)'"
    );
}
