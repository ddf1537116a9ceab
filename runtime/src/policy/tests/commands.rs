//! Programs with subcommands: what a rule for one of them, or for all, allows.

use super::*;

#[track_caller]
fn all(rules: &[&str], commands: &[&str], expected: Kind) {
    for command in commands {
        let ruling = Case::new().allow(rules).bash(command);
        assert_eq!(kind(&ruling), expected, "{rules:?}: {command}: {ruling:?}");
    }
}

#[test]
fn an_option_counts_with_any_number_of_dashes() {
    all(
        &["Bash(npm test:*)", "Bash(pnpm test:*)", "Bash(sort:*)", "Bash(npm install:*)"],
        &[
            "npm test ---script-shell=./evil.sh",
            "npm test ------script-shell ./evil.sh",
            "npm test -script-shell=./evil.sh",
            "npm test ---script-s=./evil.sh",
            "npm test ---node-options=--require=./x.js",
            "npm install --git=./evil.sh x",
            "npm install ---registry=http://x y",
            "pnpm test --config.script-shell=./evil.sh",
            "sort ---output=x y",
        ],
        Kind::Deny,
    );
    all(
        &["Bash(npm test:*)", "Bash(npm install:*)"],
        &["npm test -- --watch=false", "npm install --save-dev typescript@5", "npm install -D c"],
        Kind::Allow,
    );
}

#[test]
fn a_rule_for_a_program_leaves_only_its_known_commands_open() {
    let rules =
        ["npm", "pnpm", "yarn", "cargo", "go", "gh", "ip"].map(|name| format!("Bash({name}:*)"));
    let rules: Vec<&str> = rules.iter().map(String::as_str).collect();
    all(
        &rules,
        &[
            "npm exec -- touch c",
            "npm exe -- touch c",
            "npm exe ---call 'touch c'",
            "npm expl x",
            "npm innit x",
            "npm conf set script-shell ./x",
            "npm --loglevel exec touch c",
            "npm --yes exe touch c",
            "npm nothing-known",
            "pnpm touch c",
            "pnpm -r touch c",
            "pnpm --filter x touch c",
            "yarn workspaces foreach exec touch c",
            "cargo watch -s 'touch c'",
            "cargo +./evil build",
            "cargo --config x build",
            "cargo install x",
            "go generate",
            "go build -ldflags='-linkmode=external -extld=./evil' ./x",
            "gh extension exec x",
            "gh alias set x '!touch c'",
            "gh x",
            "ip netns exec a touch c",
            "ip netn e a touch c",
            "ip -b file",
        ],
        Kind::Deny,
    );
    all(
        &rules,
        &[
            "npm --silent run build",
            "npm t",
            "npm ls --depth=0",
            "pnpm -r run build",
            "yarn install --frozen-lockfile",
            "cargo +nightly fmt --all",
            "cargo -q test -p x",
            "cargo xtask ci",
            "go test ./...",
            "go build -ldflags='-s -w' ./x",
            "gh pr view 3",
            "ip addr",
        ],
        Kind::Allow,
    );
}

#[test]
fn a_pattern_is_no_command() {
    let rules = ["npm", "cargo", "go", "git submodule", "git bisect", "mytool", "pyenv"];
    let rules = rules.map(|name| format!("Bash({name}:*)"));
    let rules: Vec<&str> = rules.iter().map(String::as_str).collect();
    all(
        &rules,
        &[
            "npm exe? -- touch c",
            "npm e[x]ec -- touch c",
            "npm tes? x",
            "cargo instal? x",
            "cargo -q instal* x",
            "go generat? ./x",
            "git submodule foreac? 'touch c'",
            "git bisect ru? touch c",
            "mytool chec? x",
            "np? test",
            "pyenv exec touch c",
        ],
        Kind::Deny,
    );
    all(&["Bash(git add:*)"], &["git add foo*"], Kind::Allow);
}

#[test]
fn a_denial_sees_through_every_name_of_a_command() {
    for (denial, commands) in [
        (
            "Bash(touch:*)",
            &[
                "npm exe -- touch c",
                "npm x touch c",
                "npm --yes exe -- touch c",
                "npm exe? -- touch c",
                "pnpm touch c",
                "yarn touch c",
                "rustup run stable touch c",
                "composer exec touch c",
                "lerna exec -- touch c",
                "op run --env-file=x -- touch c",
                "doppler run -- touch c",
                "sccache touch c",
                "chronic touch c",
                "eatmydata touch c",
                "aws-vault exec profile -- touch c",
            ][..],
        ),
        ("Bash(npm exec:*)", &["npm exe -- touch c", "npm x touch c"]),
        ("Bash(npm publish:*)", &["npm pu", "npm publ"]),
        ("Bash(npm ci:*)", &["npm clean-in", "npm install-cl"]),
        ("Bash(npm run-script:*)", &["npm run x", "npm run-s x"]),
        ("Bash(ip route:*)", &["ip r", "ip ro add x"]),
    ] {
        for command in commands {
            let ruling = Case::new().mode(Mode::Bypass).deny(&[denial]).bash(command);
            assert_eq!(kind(&ruling), Kind::Deny, "{denial}: {command}: {ruling:?}");
        }
    }
    let case = Case::new().mode(Mode::Bypass).deny(&["Bash(touch:*)", "Bash(npm publish:*)"]);
    for command in ["npm test", "npm run build", "pnpm lint", "yarn jest x", "npm install c"] {
        assert_eq!(kind(&case.bash(command)), Kind::Allow, "{command}");
    }
}

#[test]
fn only_known_commands_are_offered_with_other_arguments() {
    let case = Case::new().attended();
    for command in [
        "pyenv exec touch x",
        "pipenv run x",
        "conda run x",
        "rbenv exec x",
        "rustup run stable x",
        "composer exec x",
        "lerna exec x",
        "sccache x",
        "chronic x",
        "eatmydata x",
        "bazel run //x",
        "nx run x",
        "turbo run x",
        "op run x",
        "doppler run x",
        "git submodule update",
        "git push",
        "git checkout -f",
        "npm audit fix",
        "docker build x",
        "kubectl delete pod x",
        "kubectl exec x",
        "docker compose up",
        "gh pr merge 3",
        "gh api x",
        "mytool x",
        "ls2 x",
        "./mkdir x",
        "make deploy",
        "curl https://example.com",
        "cargo install x",
        "cargo run",
    ] {
        let Ruling::Ask { rule, .. } = case.bash(command) else { panic!("not asked: {command}") };
        let whole = Rule::parse(&rule.clone().unwrap_or_default()).unwrap();
        assert!(
            whole.text().replace('\'', "") == format!("Bash({command})"),
            "{command}: {rule:?}"
        );
    }
    for (command, rule) in [
        ("cargo test -p x", "Bash(cargo test:*)"),
        ("gh pr view 3", "Bash(gh pr view:*)"),
        ("kubectl get pods", "Bash(kubectl get:*)"),
        ("pytest -q", "Bash(pytest:*)"),
        ("npm ci", "Bash(npm ci:*)"),
    ] {
        let Ruling::Ask { rule: offered, .. } = case.bash(command) else { panic!("{command}") };
        assert_eq!(offered.as_deref(), Some(rule), "{command}");
    }
}
