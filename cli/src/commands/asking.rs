//! Asks the person at the terminal about tool calls.

mod glance;
mod prompt;

pub use prompt::{Prompt, PromptAnswer, agrees};

use super::Common;
use crate::clean::{clean_line, exact};
use crate::exit::Failure;
use crate::paint::Paint;
use crate::print;
use crate::screen::change;
use glance::{Screen, counted, middle_cut, short};
use posse::config::allow_always;
use posse::is_open;
use posse::protocol::{Approval, ApprovalGiven, Event};
use posse::{Question, RunId, RunRow, Runtime, Update};
use std::io::IsTerminal;
use std::path::PathBuf;

/// The name in the log of the person at the terminal.
pub const PERSON: &str = "the user";

/// Asks the person at the terminal.
pub struct Asker {
    /// The settings file for rules that always apply.
    settings: Option<PathBuf>,
    paint: Paint,
    /// The terminal cannot redraw lines.
    is_dumb: bool,
    /// Which process continues the run after the answer.
    goes: ContinuedBy,
}

/// True when a person reads and types at a terminal.
pub fn is_attended() -> bool {
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

impl Asker {
    /// An asker for the terminal, if there is one.
    pub fn at_terminal(common: &Common) -> Option<Asker> {
        is_attended().then(|| Asker {
            settings: common.user_settings(),
            paint: Paint { on: !common.environment.no_color },
            is_dumb: common.environment.dumb_terminal,
            goes: ContinuedBy::Here,
        })
    }

    /// The same for a person who only watches: another process continues the run.
    pub fn watching(self) -> Asker {
        Asker { goes: ContinuedBy::Elsewhere, ..self }
    }

    /// Shows a question, and opens the prompt for the answer.
    pub fn put(&self, question: &Question) -> Prompt {
        self.show(question);
        Prompt::open(self.is_dumb)
    }

    /// True when the terminal can redraw the prompt below other lines.
    pub fn redraws(&self) -> bool {
        !self.is_dumb
    }

    /// Shows a question.
    pub fn show(&self, question: &Question) {
        let settings = self.settings.as_deref().map(|it| it.display().to_string());
        print::note(painted(question, settings, self.paint, Screen::now()));
    }

    /// Stores an answer, and says so if another answer came first.
    pub async fn give(
        &self,
        runtime: &Runtime,
        question: &Question,
        answer: Approval,
    ) -> Result<(), Failure> {
        let settings = self.settings.as_deref();
        if let AnswerResult::TooLate(why) =
            give(runtime, question, answer, settings, self.goes).await?
        {
            print::note(format!("  {why}"));
        }
        Ok(())
    }
}

/// What `question` is about, in one line that may still be too long.
pub fn subject(question: &Question) -> String {
    let asked = &question.asked;
    let shown = exact(&asked.shown);
    let mut lines = shown.lines().filter(|line| !line.trim().is_empty());
    let first = counted(lines.next().unwrap_or_default().trim());
    let more = if lines.next().is_some() { " …" } else { "" };
    format!("{}: {first}{more}", clean_line(&asked.tool, 80))
}

/// The answers that can be typed to `question`.
pub fn choices(question: &Question) -> &'static str {
    match question.asked.rule {
        Some(_) => "  type y, r, a or n alone; after n you can say why",
        None => "  type y or n alone; after n you can say why",
    }
}

/// Waits until `question` is closed elsewhere, and returns the reason.
pub async fn withdrawn(runtime: &Runtime, question: &Question) -> Result<&'static str, Failure> {
    let Question { run, asked, .. } = question;
    let row = runtime.find(&run.to_string()).await?;
    let mut events = runtime.handle(*run).events(row.log.last_seq);
    // The stream has no events from before `row`, so check the questions first.
    while runtime.questions(Some(row.family.root)).await?.contains(question) {
        let event = loop {
            match events.next().await.transpose()? {
                Some(Update::Delta(_)) => {}
                Some(Update::Event(record)) => break record.event,
                None => return Ok("no longer asked"),
            }
        };
        let answers =
            |given: &ApprovalGiven| given.call == asked.call && given.digest == asked.digest;
        if matches!(&event, Event::ApprovalGiven(given) if answers(given)) {
            return Ok("answered elsewhere");
        }
    }
    Ok("no longer asked")
}

/// The first open question of `rows`.
pub async fn first_asked<'r>(
    runtime: &Runtime,
    rows: impl IntoIterator<Item = &'r RunRow>,
) -> Result<Option<Question>, Failure> {
    for row in rows.into_iter().filter(|row| row.state.asks > 0 && is_open(row)) {
        if let Some(question) = runtime.questions_of(row.id).await?.into_iter().next() {
            return Ok(Some(question));
        }
    }
    Ok(None)
}

/// The first open question of `row` and its subagents.
pub async fn first_asked_below(
    runtime: &Runtime,
    row: &RunRow,
) -> Result<Option<Question>, Failure> {
    let below = runtime.handle(row.id).unfinished_below().await?;
    first_asked(runtime, std::iter::once(row).chain(&below)).await
}

/// The error that `run` waits for an answer and that no person can be asked here.
pub fn waits_for_answer(run: RunId, question: &Question) -> Failure {
    let (run, asking) = (run.short(), question.run.short());
    Failure::internal(format!("run {run} waits for an answer")).hint(format!(
        "`posse runs questions {run}` shows what is asked; `posse runs answer {asking} --once` \
         allows it, `--no` does not"
    ))
}

/// What happened to an answer.
#[must_use]
pub enum AnswerResult {
    /// It is stored and counts.
    Taken,
    /// Another answer came first, or the run was stopped meanwhile.
    TooLate(String),
}

/// Which process continues a run after the answer.
#[derive(Clone, Copy)]
pub enum ContinuedBy {
    /// This process.
    Here,
    /// Another process. This one may not even have the API key.
    Elsewhere,
}

/// Stores an answer. A rule that always applies is written to the settings first.
pub async fn give(
    runtime: &Runtime,
    question: &Question,
    answer: Approval,
    settings: Option<&std::path::Path>,
    who: ContinuedBy,
) -> Result<AnswerResult, Failure> {
    let answer = match answer {
        Approval::Always { rule } => match settings.map(|file| (file, allow_always(file, &rule))) {
            Some((file, Ok(()))) => {
                print::note(format!("  {rule} is allowed from now on: {}", file.display()));
                Approval::Always { rule }
            }
            unwritten => {
                let why = unwritten.map_or_else(
                    || "there is no file for your settings: HOME is not set".to_owned(),
                    |(_, written)| written.err().map_or_else(String::new, |it| it.to_string()),
                );
                print::note(format!("  {rule} is allowed for this run only: {why}"));
                Approval::Run { rule }
            }
        },
        answer => answer,
    };
    let (rule, is_for_all) = match &answer {
        Approval::Run { rule } => (Some(rule.clone()), false),
        Approval::Always { rule } => (Some(rule.clone()), true),
        Approval::Once | Approval::Denied { .. } => (None, false),
    };
    if let given @ AnswerResult::TooLate(_) = decide(runtime, question, answer, who).await? {
        return Ok(given);
    }
    // The rule also answers the other open questions that it covers.
    if let Some(rule) = rule {
        let root = runtime.find(&question.run.to_string()).await?.family.root;
        let is_covered = |other: &Question| {
            other.asked.rule.as_ref() == Some(&rule) && (is_for_all || other.run == question.run)
        };
        for other in runtime.questions(Some(root)).await?.iter().filter(|other| is_covered(other)) {
            // If another answer came first, that one counts.
            let _faster = decide(runtime, other, Approval::Once, who).await?;
        }
    }
    Ok(AnswerResult::Taken)
}

async fn decide(
    runtime: &Runtime,
    question: &Question,
    answer: Approval,
    who: ContinuedBy,
) -> Result<AnswerResult, Failure> {
    let asked = &question.asked;
    let (run, call, digest) = (question.run, asked.call.clone(), &asked.digest);
    let decided = match who {
        ContinuedBy::Here => runtime.decide(run, call, digest, answer, PERSON).await,
        ContinuedBy::Elsewhere => runtime.post_decision(run, call, digest, answer, PERSON).await,
    };
    match decided {
        Err(posse::Error::InvalidInput(why)) => Ok(AnswerResult::TooLate(clean_line(&why, 400))),
        other => Ok(other.map(|()| AnswerResult::Taken)?),
    }
}

/// The full question, the keys that answer it, and right above the prompt the parts that a person must see.
fn painted(question: &Question, settings: Option<String>, paint: Paint, screen: Screen) -> String {
    let mut text = described(question, paint);
    text.push_str("\n  [y] once   [n] or Esc no, [n why] no and say why");
    if let Some(rule) = &question.asked.rule {
        let rule = middle_cut(&counted(&exact(rule)), LONGEST_RULE);
        text.push_str(&format!("\n  [r] for this run: {rule}"));
        if let Some(settings) = settings {
            text.push_str(&format!(
                "\n  [a] always, in every folder: {rule}, written to {settings}"
            ));
        }
    }
    text.push_str(&at_a_glance(question, &text, screen));
    text
}

/// The full question, for people.
pub fn describe(question: &Question) -> String {
    let mut text = described(question, Paint { on: false });
    text.push_str(&at_a_glance(question, &text, Screen::now()));
    text
}

fn described(question: &Question, paint: Paint) -> String {
    let Question { run, agent, depth, about, asked, .. } = question;
    let about = match about.is_empty() {
        true => String::new(),
        false => format!(" \"{}\"", clean_line(about, 60)),
    };
    let mut text = format!(
        "? {agent}{about} (run {}, depth {depth}) wants to call {}",
        run.short(),
        clean_line(&asked.tool, 80)
    );
    for line in &shown(question, paint) {
        text.push_str("\n  │ ");
        text.push_str(line);
    }
    if !asked.shown.is_ascii() {
        text.push_str("\n  ! it has characters outside ASCII: look closely");
    }
    text.push_str(&format!("\n  {}", clean_line(&required_by(&asked.by), 200)));
    text
}

/// The parts that a person must see of a question whose description `text` may fill the `screen`.
fn at_a_glance(question: &Question, text: &str, screen: Screen) -> String {
    let asked = &question.asked;
    // The prompt takes one row.
    let rows = screen.rows(text) + 1;
    let mut said = String::new();
    if rows > screen.height {
        said.push_str(&format!(
            "\n  ! it fills {rows} rows of a screen with {}: what you see may not be all",
            screen.height
        ));
    }
    if !question.tool.runs_commands() {
        return said;
    }
    if rows > screen.height {
        said.push_str(&format!("\n  in short: {}", short(&exact(&asked.shown), screen)));
    }
    if rows > screen.height || asked.shown.lines().count() > FEW {
        let runs = posse::policy::programs_in(&asked.shown);
        if !runs.is_empty() {
            said.push_str(&format!("\n  it runs: {}", clean_line(&runs.join(", "), 400)));
        }
    }
    said
}

/// The most lines of a command that a person can read at a glance.
const FEW: usize = 4;

/// The most characters of a rule that are shown.
const LONGEST_RULE: usize = 300;

/// Why the call needs an approval.
fn required_by(by: &str) -> String {
    match by.strip_prefix("the mode ") {
        None => format!("approval required by {by}"),
        Some(rest) => {
            let (mode, why) = rest.split_once("; ").unwrap_or((rest, ""));
            let why = if why.is_empty() { String::new() } else { format!(": {why}") };
            format!("mode `{mode}` requires approval{why}")
        }
    }
}

/// The subject of a question in lines, with every byte of it. Long runs of blanks are replaced by
/// their number. A diff has line numbers.
fn shown(question: &Question, paint: Paint) -> Vec<String> {
    let asked = &question.asked;
    // The output of other tools may look like a diff without being one.
    let is_change = question.tool.changes_files();
    let change = change::difference_in(&asked.shown).filter(|_| is_change);
    let before = &asked.shown[..asked.shown.len() - change.map_or(0, str::len)];
    let mut lines: Vec<String> = exact(before).lines().map(counted).collect();
    let rows = change.map(change::rows).unwrap_or_default();
    let width = change::number_width(&rows);
    let row = |row: &change::Row<'_>| {
        change::painted(row, &counted(&exact(change::text_of(row))), width, paint)
    };
    lines.extend(rows.iter().map(row));
    lines
}

/// The answer in `line` to `question`.
pub fn understood(line: &str, question: &Question) -> Option<Approval> {
    let (word, rest) = line.trim().split_once(char::is_whitespace).unwrap_or((line.trim(), ""));
    let rule = question.asked.rule.clone();
    // Only a refusal may have more words: with a yes, they would be a condition.
    match (word.to_ascii_lowercase().trim_end_matches([',', '.', ':', ';', '!']), rest.trim()) {
        ("y" | "yes" | "once", "") => Some(Approval::Once),
        ("r" | "run", "") => rule.map(|rule| Approval::Run { rule }),
        ("a" | "always", "") => rule.map(|rule| Approval::Always { rule }),
        ("n" | "no" | "nope" | "never" | "deny", why) => {
            Some(Approval::Denied { reason: why.to_owned() })
        }
        _ => None,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use posse::protocol::{ApprovalAsked, CallId, Extra};

    fn question(shown: &str, rule: Option<&str>) -> Question {
        let asked = ApprovalAsked {
            call: CallId("c".into()),
            tool: "Bash".into(),
            digest: "d".into(),
            shown: shown.into(),
            by: "mode ask".into(),
            rule: rule.map(str::to_owned),
            extra: Extra::default(),
        };
        let run = RunId::new();
        let agent = "code".parse().unwrap();
        let tool = known("Bash");
        Question { run, agent, depth: 1, about: String::new(), at: 0, asked, tool }
    }

    fn known(name: &str) -> posse::agents::ToolFacts {
        posse::agents::built_in_tools().into_iter().find(|tool| tool.name == name).unwrap()
    }

    #[test]
    fn a33_a34_a_question_shows_every_byte_and_does_nothing_to_the_terminal() {
        let padded = format!("ls{}\r\u{202e}; rm -rf x\u{200b}\x1b[2K", " ".repeat(5_000));
        let text = painted(&question(&padded, None), None, Paint { on: false }, SCREEN);
        assert!(text.contains("ls …(5000 spaces)… \\r"), "{text}");
        assert!(text.contains("\\r\\u{202e}; rm -rf x\\u{200b}\\u{1b}[2K"), "{text}");
        assert!(text.contains("outside ASCII"));
        assert!(!text.contains('\r') && !text.contains('\x1b') && !text.contains('\u{202e}'));
    }

    const SCREEN: Screen = Screen { width: 80, height: 24 };

    #[test]
    fn what_a_command_runs_stands_beside_the_prompt_whatever_its_size() {
        let (spaces, tabs) = (" ".repeat(3_000), "\t".repeat(3_000));
        let (word, lines) = ("y".repeat(6_000), "\n".repeat(40));
        for (before, after) in
            [(&spaces, &spaces), (&tabs, &tabs), (&word, &word), (&lines, &lines), (&spaces, &word)]
        {
            let command = format!("mkdir hi{before}; touch PAYLOAD; mkdir x{after}");
            let rule = format!("Bash({})", &command[..1_900.min(command.len())]);
            let question = question(&command, Some(&rule));
            let text = painted(&question, Some("s".into()), Paint { on: false }, SCREEN);
            // The lines that are visible when the prompt is in the last row.
            let mut rows = SCREEN.height - 1;
            let mut seen: Vec<&str> = Vec::new();
            for line in text.lines().rev() {
                let needed = SCREEN.rows(line);
                if needed > rows {
                    break;
                }
                rows -= needed;
                seen.push(line);
            }
            assert!(seen.iter().any(|line| line.contains("touch")), "{text}");
            let is_whole = SCREEN.rows(&text) < SCREEN.height;
            assert!(is_whole || seen.iter().any(|line| line.contains("may not be all")), "{text}");
        }
    }

    #[test]
    fn a_change_is_shown_with_the_line_numbers_of_the_file() {
        let mut question = question("a.rs\n@@ -9,2 +9,2 @@\n x\n-old\n+new\u{202e}\n", None);
        question.tool = known("Edit");
        let text = painted(&question, None, Paint { on: false }, SCREEN);
        assert!(text.contains("│ a.rs\n  │  9  x\n  │ 10 -old\n  │ 10 +new\\u{202e}\n"), "{text}");
        question.tool = known("Bash");
        let plain = painted(&question, None, Paint { on: false }, SCREEN);
        assert!(plain.contains("│ @@ -9,2 +9,2 @@"), "a command is shown as it is");
    }

    #[test]
    fn an_answer_is_understood_or_asked_for_again() {
        let with = question("ls", Some("Bash(ls:*)"));
        let rule = || "Bash(ls:*)".to_owned();
        assert_eq!(understood("y", &with), Some(Approval::Once));
        assert_eq!(understood(" R ", &with), Some(Approval::Run { rule: rule() }));
        assert_eq!(understood("a", &with), Some(Approval::Always { rule: rule() }));
        let denied = Approval::Denied { reason: "use git rm".into() };
        assert_eq!(understood("n use git rm", &with), Some(denied));
        for sentence in ["a bit risky, what does it do?", "yes but keep the title", "y not sure"] {
            assert_eq!(understood(sentence, &with), None, "{sentence}");
        }
        let denied = Approval::Denied { reason: String::new() };
        assert_eq!(understood("never", &with), Some(denied));
        assert_eq!(understood("", &with), None, "Enter alone decides nothing");
        assert_eq!(understood("r", &question("ls", None)), None, "there is no rule to allow");
    }
}
