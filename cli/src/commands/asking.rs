//! Asking the person at the terminal about calls of runs.

mod glance;

use super::Common;

use crate::clean::{clean_line, exact};
use crate::exit::Failure;
use crate::paint::Paint;
use crate::print;
use crate::screen::change;
use crate::signals::{Signal, Signals};
use glance::{Screen, counted, middle_cut, short};
use posse::is_open;
use posse::protocol::{Approval, ApprovalGiven, Event};
use posse::{Question, RunId, RunRow, Runtime, Update};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::{QueueSelector, tcflush};
use std::fs::File;
use std::io::{IsTerminal, Read};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::Semaphore;

/// Who answers at the terminal.
pub const PERSON: &str = "the user";

/// The longest answer that is read.
const LONGEST: usize = 4_096;

/// Asks the person at the terminal.
pub struct Asker {
    /// Where rules are written that always hold.
    settings: Option<PathBuf>,
    paint: Paint,
    /// Held by whoever reads what is typed.
    reading: Arc<Semaphore>,
    /// Where a run goes on that has its answer.
    goes: Goes,
}

/// What came of asking.
pub enum Replied {
    /// Every question has its answer.
    Answered,
    /// A signal came instead.
    Signal(Signal),
    /// The input has ended: there is nobody.
    Gone,
}

/// True when there is someone at a terminal who reads and writes.
pub fn is_attended() -> bool {
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

impl Asker {
    /// Asks at the terminal, if there is one.
    pub fn at_terminal(common: &Common) -> Option<Asker> {
        is_attended().then(|| Asker {
            settings: common.user_settings(),
            paint: Paint { on: !common.environment.no_color },
            reading: Arc::new(Semaphore::new(1)),
            goes: Goes::Here,
        })
    }

    /// The same for someone who only watches: the run goes on where it is executed.
    pub fn watching(self) -> Asker {
        Asker { goes: Goes::Elsewhere, ..self }
    }

    /// Asks what `run` and the others of its tree want to know.
    pub async fn ask(
        &self,
        runtime: &Runtime,
        run: RunId,
        signals: &mut Signals,
    ) -> Result<Replied, Failure> {
        let root = runtime.find(&run.to_string()).await?.root;
        loop {
            let questions = runtime.questions(Some(root)).await?;
            let Some(question) = questions.first() else { return Ok(Replied::Answered) };
            forget_typed();
            let settings = self.settings.as_deref().map(|it| it.display().to_string());
            print::note(painted(question, settings, self.paint, Screen::now()));
            let answer = tokio::select! {
                biased;
                signal = signals.next() => {
                    self.stopped_reading().await;
                    return Ok(Replied::Signal(signal));
                }
                answer = self.answer_to(question) => answer,
                why = withdrawn(runtime, question) => {
                    print::note(format!("\n  {}", why?));
                    self.stopped_reading().await;
                    forget_typed();
                    continue;
                }
            };
            let Some(answer) = answer else { return Ok(Replied::Gone) };
            if let Given::TooLate(why) =
                give(runtime, question, answer, self.settings.as_deref(), self.goes).await?
            {
                print::note(format!("  {why}"));
            }
        }
    }

    /// What the person says about `question`, who is asked until it is understood; nothing when the
    /// input has ended.
    async fn answer_to(&self, question: &Question) -> Option<Approval> {
        loop {
            print::note_piece("  allow it? ");
            match understood(&self.read_line().await?, question) {
                Some(answer) => return Some(answer),
                None => print::note(match question.asked.rule {
                    Some(_) => "  type y, r, a or n alone; after n you can say why",
                    None => "  type y or n alone; after n you can say why",
                }),
            }
        }
    }

    /// The next line of the terminal; nothing at its end. Gives up when it is dropped.
    async fn read_line(&self) -> Option<String> {
        struct Stop(Arc<AtomicBool>);
        impl Drop for Stop {
            fn drop(&mut self) {
                self.0.store(true, Ordering::Relaxed);
            }
        }
        let turn = self.reading.clone().acquire_owned().await.ok()?;
        let stop = Arc::new(AtomicBool::new(false));
        let _stop = Stop(stop.clone());
        let reading = move || {
            let _turn = turn;
            read_until(&stop)
        };
        tokio::task::spawn_blocking(reading).await.ok().flatten()
    }

    /// Waits until a reader that was told to give up has done so: it would take from the next one
    /// what was typed for it.
    async fn stopped_reading(&self) {
        // Nobody closes it.
        let _ = self.reading.acquire().await;
    }
}

/// Waits until `question` needs no answer from here any more, and says why.
async fn withdrawn(runtime: &Runtime, question: &Question) -> Result<&'static str, Failure> {
    let Question { run, asked, .. } = question;
    let row = runtime.find(&run.to_string()).await?;
    let mut events = runtime.handle(*run).events(row.last_seq);
    // What happened up to that row is in no event to come.
    while runtime.questions(Some(row.root)).await?.contains(question) {
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

/// The first thing that one of `rows` asks and nobody has answered.
pub async fn first_asked<'r>(
    runtime: &Runtime,
    rows: impl IntoIterator<Item = &'r RunRow>,
) -> Result<Option<Question>, Failure> {
    for row in rows.into_iter().filter(|row| row.asks > 0 && is_open(row)) {
        if let Some(question) = runtime.questions_of(row.id).await?.into_iter().next() {
            return Ok(Some(question));
        }
    }
    Ok(None)
}

/// The first thing that `row` or one below it asks and nobody has answered.
pub async fn first_asked_below(
    runtime: &Runtime,
    row: &RunRow,
) -> Result<Option<Question>, Failure> {
    let below = runtime.handle(row.id).unfinished_below().await?;
    first_asked(runtime, std::iter::once(row).chain(&below)).await
}

/// What is told of `run`, which cannot go on without an answer, where nobody can be asked.
pub fn waits_for_answer(run: RunId, question: &Question) -> Failure {
    let (run, asking) = (run.short(), question.run.short());
    Failure::internal(format!("run {run} waits for an answer")).hint(format!(
        "`posse runs questions {run}` shows what is asked; `posse runs answer {asking} --once` \
         allows it, `--no` does not"
    ))
}

/// What became of an answer.
#[must_use]
pub enum Given {
    /// It is stored, and counts.
    Taken,
    /// Someone else was faster, or the run was stopped meanwhile.
    TooLate(String),
}

/// Where the run goes on that has its answer.
#[derive(Clone, Copy)]
pub enum Goes {
    /// In this process.
    Here,
    /// In another: this one may not even have the key that it needs.
    Elsewhere,
}

/// Stores an answer; one that holds always is written to the settings first.
pub async fn give(
    runtime: &Runtime,
    question: &Question,
    answer: Approval,
    settings: Option<&std::path::Path>,
    who: Goes,
) -> Result<Given, Failure> {
    if let Approval::Always { rule } = &answer {
        let Some(settings) = settings else {
            return Err(Failure::usage("there is no file for your settings: HOME is not set")
                .hint("allow it once, or for this run"));
        };
        posse::config::allow_always(settings, rule)?;
        print::note(format!("  {rule} is allowed from now on: {}", settings.display()));
    }
    let asked = &question.asked;
    let (run, call, digest) = (question.run, asked.call.clone(), &asked.digest);
    let decided = match who {
        Goes::Here => runtime.decide(run, call, digest, answer, PERSON).await,
        Goes::Elsewhere => runtime.post_decision(run, call, digest, answer, PERSON).await,
    };
    match decided {
        Err(posse::Error::InvalidInput(why)) => Ok(Given::TooLate(clean_line(&why, 400))),
        other => Ok(other.map(|()| Given::Taken)?),
    }
}

/// A question, whole, the keys that answer it, and right above the prompt what must be seen.
fn painted(question: &Question, settings: Option<String>, paint: Paint, screen: Screen) -> String {
    let mut text = described(question, paint);
    text.push_str("\n  [y] once   [n] no, [n why] no and say why");
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

/// A question, whole, for a person.
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

/// What a person must see of a question that is described by `text` and fills much of `screen`.
fn at_a_glance(question: &Question, text: &str, screen: Screen) -> String {
    let asked = &question.asked;
    // The prompt has a row too.
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

/// Lines of a command that are read at a glance.
const FEW: usize = 4;

/// Characters of a rule that are shown.
const LONGEST_RULE: usize = 300;

/// Why a person has to answer.
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

/// What a question is about, in lines, with every byte of it; many blanks in a row are counted. A
/// change of a file has its line numbers.
fn shown(question: &Question, paint: Paint) -> Vec<String> {
    let asked = &question.asked;
    // Of other tools, a text may look like a difference and be none.
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

/// What a line says about `question`.
fn understood(line: &str, question: &Question) -> Option<Approval> {
    // Esc says no, and nothing beside a word.
    let typed = line.replace('\x1b', "");
    if typed.trim().is_empty() && typed != line {
        return Some(Approval::Denied { reason: String::new() });
    }
    let line = typed.as_str();
    let (word, rest) = line.trim().split_once(char::is_whitespace).unwrap_or((line.trim(), ""));
    let rule = question.asked.rule.clone();
    // Only a refusal may have more words: what a person adds to a yes is a condition.
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

/// Throws away what was typed before a question is shown: it was meant for something else.
fn forget_typed() {
    if let Ok(terminal) = File::open("/dev/tty") {
        let _ = tcflush(&terminal, QueueSelector::IFlush);
    }
}

fn read_until(stop: &AtomicBool) -> Option<String> {
    let mut terminal = File::open("/dev/tty").ok()?;
    let mut line = Vec::new();
    let tick = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };
    while !stop.load(Ordering::Relaxed) && line.len() < LONGEST {
        let mut events = [PollFd::new(&terminal, PollFlags::IN)];
        if poll(&mut events, Some(&tick)).is_ok_and(|ready| ready == 0)
            || stop.load(Ordering::Relaxed)
        {
            continue;
        }
        let mut byte = [0];
        match terminal.read(&mut byte) {
            Ok(1) if byte[0] == b'\n' => break,
            Ok(1) => line.push(byte[0]),
            _ if line.is_empty() => return None,
            _ => break,
        }
    }
    Some(String::from_utf8_lossy(&line).into_owned())
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
            // What is on the screen when the prompt stands in its last row.
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
        assert_eq!(understood("\x1by", &with), Some(Approval::Once), "Esc, and then a word");
        let denied = Approval::Denied { reason: String::new() };
        assert_eq!(understood("\x1b\x1b", &with), Some(denied), "Esc alone");
        assert_eq!(understood("r", &question("ls", None)), None, "there is no rule to allow");
    }
}
