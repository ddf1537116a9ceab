//! The rule that is offered when a person is asked: one that would have allowed the call, and no more
//! than what is like it.

use super::command::CommandPattern;
use super::path::Case;
use super::set::Rules;
use super::shell::Word;
use super::subject::Subject;
use super::{Policy, Rule};
use crate::policy::rule::WRITING;
use posse_protocol::{ToolCall, ToolSpec};

/// Programs whose first argument says what they do.
const WITH_COMMANDS: &str = "git cargo npm go docker podman kubectl pip make uv dotnet \
     systemctl apt apt-get dnf brew snap terraform helm";

/// Programs of which the first two arguments say that.
const WITH_TWO_COMMANDS: &str = "gh glab aws gcloud az doctl flyctl fly heroku firebase";

/// Programs that run what their other arguments name: only the whole command is like itself.
const RUNNERS: &str = "yarn pnpm bun poetry bundle just task rake npx pnpx bunx pipx uvx tox nox hatch pdm pixi rye mise asdf \
     direnv ssh scp rsync nix nix-shell ansible ansible-playbook vagrant foreman overmind gradle mvn sbt lein";

/// Commands of the others that do so.
const RUNNING: &str = "uv run,uv tool,go run,go generate,go test,go tool,cargo run,cargo bench,docker run,\
     docker exec,docker compose,podman run,podman exec,kubectl exec,kubectl run,kubectl debug,npm run,\
     npm exec,npm start,npm test,npm x,dotnet run,dotnet test,dotnet exec,snap run";

/// The rule that would allow `call`, if one can be written.
pub(super) fn rule(
    policy: &Policy,
    call: &ToolCall,
    spec: &ToolSpec,
    subject: &Subject,
) -> Option<String> {
    let tool = spec.name.as_str();
    // Without rules about the tool it was not looked at.
    let own;
    let subject = match subject {
        Subject::Other => {
            own = Subject::of(call, tool, &policy.workspace);
            &own
        }
        subject => subject,
    };
    let candidates = match subject {
        Subject::Command(command) => commands(command.only()?),
        Subject::Path(target) if WRITING.contains(&tool) => {
            let below = target.path.strip_prefix(&policy.workspace)?.strip_prefix('/')?;
            vec![format!("Edit(/{})", escaped(below))]
        }
        Subject::Host(host) => vec![format!("{tool}(domain:{})", host.as_ref()?)],
        _ => vec![tool.to_owned()],
    };
    let would_allow = |text: &String| {
        let parsed = Rule::parse_among(text, &policy.tools).is_ok();
        let rules = Rules::compile([text], &policy.tools, policy.roots(), Case::Matters);
        parsed && rules.is_ok_and(|rules| rules.allow(tool, subject).is_ok_and(|it| it.is_some()))
    };
    candidates.into_iter().find(would_allow)
}

/// Rules for a command: by its program and what it is told to do, else the whole of it.
fn commands(words: &[Word]) -> Vec<String> {
    let texts: Option<Vec<&str>> = words.iter().map(Word::exact).collect();
    let plain = |text: &&str| {
        !text.is_empty()
            && text.bytes().all(|it| it.is_ascii_alphanumeric() || b"-_./".contains(&it))
    };
    let head = words.first().and_then(Word::exact).filter(plain);
    let mut rules = Vec::new();
    // One that is named by its place is not known by its name.
    if let Some(head) = head.filter(|head| !head.contains('/')) {
        let lists = |list: &str| list.split_whitespace().any(|name| name == head);
        let argument = |at: usize| {
            let text = words.get(at).and_then(Word::exact).filter(plain);
            text.filter(|text| !text.starts_with('-'))
        };
        let runs =
            |command: &str| RUNNING.split(',').any(|it| it.trim() == format!("{head} {command}"));
        match (argument(1), argument(2)) {
            _ if lists(RUNNERS) => {}
            (Some(one), Some(two)) if lists(WITH_TWO_COMMANDS) => {
                rules.push(format!("Bash({head} {one} {two}:*)"));
            }
            (Some(one), _) if lists(WITH_COMMANDS) && !runs(one) => {
                rules.push(format!("Bash({head} {one}:*)"));
            }
            _ if lists(WITH_COMMANDS) || lists(WITH_TWO_COMMANDS) => {}
            _ => rules.push(format!("Bash({head}:*)")),
        }
    }
    if let Some(texts) = texts {
        let quoted = texts.iter().map(|text| match plain(text) {
            true => (*text).to_owned(),
            false => format!("'{}'", text.replace('\'', "'\\''")),
        });
        rules.push(format!("Bash({})", quoted.collect::<Vec<_>>().join(" ")));
    }
    rules
}

/// The rule with which a person says that it need not be known what the command `words` runs.
pub(super) fn settling(words: &[Word]) -> Option<String> {
    let plain =
        |text: &&str| text.bytes().all(|it| it.is_ascii_alphanumeric() || b"-_.".contains(&it));
    let texts: Vec<&str> = words.iter().map_while(Word::exact).take_while(plain).collect();
    let is_option = texts.get(1).is_some_and(|text| text.starts_with('-'));
    let beginning = texts.get(..if is_option { 2 } else { 1 })?.join(" ");
    let pattern = CommandPattern::parse(&format!("{beginning}:*")).ok()?;
    pattern.settles(words).then(|| format!("Bash({beginning}:*)"))
}

/// The program that a rule with `specifier` is about, if it says.
pub(super) fn program(specifier: &str) -> Option<String> {
    CommandPattern::parse(specifier).ok()?.program().map(str::to_owned)
}

/// A command in a few words.
pub(super) fn shown(words: &[Word]) -> String {
    const LONGEST: usize = 60;
    let texts: Vec<&str> = words.iter().map(|word| word.exact().unwrap_or("…")).collect();
    let line = texts.join(" ").replace(['\n', '\t', '`'], " ");
    match line.chars().count() > LONGEST {
        true => line.chars().take(LONGEST).chain(['…']).collect(),
        false => line,
    }
}

/// A path as a pattern that means it alone.
fn escaped(path: &str) -> String {
    path.chars().fold(String::new(), |mut text, char| {
        if "*?[\\".contains(char) {
            text.push('\\');
        }
        text.push(char);
        text
    })
}
