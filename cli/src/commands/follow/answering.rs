//! Asks the questions of a run while it is followed. Events are shown above the line in which the
//! person answers.

use super::{FollowedRun, SOON, Viewer, reached};
use crate::commands::asking::{self, Asker, PromptAnswer, understood};
use crate::exit::Failure;
use crate::print;
use crate::signals::Signal;
use posse::protocol::{Approval, CallId, Event};
use posse::{Question, RunId, Runtime, Update};
use std::time::Duration;
use tokio::time::Instant;

/// The result of asking.
enum Replied {
    /// Every question has its answer.
    Answered,
    /// A signal came first.
    Signal(Signal),
    /// The input has ended, so no person can answer.
    Gone,
}

/// How long nothing must have been printed until a question is shown again below it.
const QUIET: Duration = Duration::from_secs(1);

/// The longest wait for events between two questions.
const CATCH_UP: Duration = Duration::from_secs(2);

/// The calls with open questions.
type Known = Vec<(RunId, CallId)>;

impl Viewer {
    /// Asks the open questions of the run's tree, if a person is there. Returns the signal that
    /// came instead of an answer.
    pub(super) async fn ask(
        &mut self,
        runtime: &Runtime,
        followee: &mut FollowedRun,
    ) -> Result<Option<Signal>, Failure> {
        let Some(asker) = self.asker.take() else { return Ok(None) };
        // The question reads the terminal itself. Text that was typed before must not answer it.
        let is_typing = self.typing.is_listening();
        self.typing.stop();
        self.screen.show_typed(Vec::new());
        self.screen.pause();
        let replied = self.ask_all(&asker, runtime, followee).await;
        self.screen.end_prompt();
        if is_typing {
            self.typing.listen();
            self.screen.show_typed(self.typing.lines(self.screen.paint()));
        }
        match replied? {
            // A chat cannot continue while the question is open.
            Replied::Gone if self.leaves_questions => {
                self.asker = Some(asker);
                self.screen
                    .remark("the question stays open, and is asked again when you come back");
                Ok(Some(Signal::Hangup))
            }
            Replied::Gone => Ok(None),
            Replied::Answered => {
                self.asker = Some(asker);
                Ok(None)
            }
            Replied::Signal(signal) => {
                self.asker = Some(asker);
                // The question is shown again when the run is followed again.
                followee.may_ask = true;
                Ok(Some(signal))
            }
        }
    }

    async fn ask_all(
        &mut self,
        asker: &Asker,
        runtime: &Runtime,
        followee: &mut FollowedRun,
    ) -> Result<Replied, Failure> {
        let root = runtime.find(&followee.run.id().to_string()).await?.family.root;
        let named = |question: &Question| (question.run, question.asked.call.clone());
        // Later questions follow once the events before them have been shown.
        let mut known: Known = runtime.questions(Some(root)).await?.iter().map(named).collect();
        loop {
            let questions = runtime.questions(Some(root)).await?;
            let Some(question) = questions.iter().find(|it| known.contains(&named(it))) else {
                return Ok(Replied::Answered);
            };
            match self.ask_one(asker, runtime, followee, question, &mut known).await? {
                Replied::Answered => {}
                other => return Ok(other),
            }
            // What comes of the answer would otherwise stand between the next question and its prompt.
            if questions.len() > 1 && asker.redraws() {
                self.show_what_follows(followee, &mut known).await?;
            }
        }
    }

    /// Shows what happens until it is quiet for a moment, but not for long.
    async fn show_what_follows(
        &mut self,
        followee: &mut FollowedRun,
        known: &mut Known,
    ) -> Result<(), Failure> {
        let latest = Instant::now() + CATCH_UP;
        loop {
            let quiet = Instant::now() + SOON;
            let update = tokio::select! {
                biased;
                update = followee.next() => update,
                () = tokio::time::sleep_until(quiet.min(latest)) => return Ok(()),
            };
            if !self.pass(followee, known, update)? {
                return Ok(());
            }
        }
    }

    /// Shows an update while questions are open. Returns false if it is the last one for now.
    fn pass(
        &mut self,
        followee: &mut FollowedRun,
        known: &mut Known,
        update: Option<Result<(RunId, Update), posse::Error>>,
    ) -> Result<bool, Failure> {
        let Some(update) = update else { return Ok(false) };
        let (about, update) = update?;
        if is_end(&update, about, followee) {
            followee.ahead.push_front((about, update));
            return Ok(false);
        }
        if let Update::Event(record) = &update
            && let Event::ApprovalAsked(asked) = &record.event
        {
            known.push((about, asked.call.clone()));
        }
        self.show(followee, about, &update)?;
        Ok(true)
    }

    /// Asks until the answer is valid, or until it was given elsewhere.
    async fn ask_one(
        &mut self,
        asker: &Asker,
        runtime: &Runtime,
        followee: &mut FollowedRun,
        question: &Question,
        known: &mut Known,
    ) -> Result<Replied, Failure> {
        let mut prompt = asker.put(question);
        let mut withdrawn = std::pin::pin!(asking::withdrawn(runtime, question));
        // If lines cannot be redrawn, events are shown after the answer.
        let mut listens = prompt.line().is_some();
        let mut printed = self.screen.printed();
        // When to show the question again, after other lines were printed below it.
        let mut again_at: Option<Instant> = None;
        let answer = loop {
            if let Some(line) = prompt.line() {
                self.screen.prompt(line);
            }
            let is_untouched = prompt.is_untouched();
            tokio::select! {
                biased;
                signal = self.signals.next() => {
                    prompt.close().await;
                    return Ok(Replied::Signal(signal));
                }
                said = prompt.next() => match said {
                    PromptAnswer::Nothing => {}
                    PromptAnswer::Gone => return Ok(Replied::Gone),
                    PromptAnswer::No => {
                        if let Some(line) = prompt.line() {
                            self.screen.prompt(format!("{line}no"));
                        }
                        break Approval::Denied { reason: String::new() };
                    }
                    PromptAnswer::Line(line) => match understood(&line, question) {
                        Some(answer) => break answer,
                        None => {
                            self.screen.end_prompt();
                            print::note(asking::choices(question));
                            prompt.again();
                        }
                    },
                },
                why = &mut withdrawn => {
                    match prompt.line() {
                        Some(_) => self.screen.end_prompt(),
                        None => print::note(""),
                    }
                    print::note(format!("  {}", why?));
                    prompt.close().await;
                    return Ok(Replied::Answered);
                }
                update = followee.next(), if listens => {
                    listens = self.pass(followee, known, update)?;
                    if self.screen.printed() != printed {
                        printed = self.screen.printed();
                        again_at = Some(Instant::now() + QUIET);
                        prompt.name(Some(asking::subject(question)));
                    }
                }
                () = reached(again_at), if is_untouched => {
                    again_at = None;
                    prompt.name(None);
                    self.screen.pause();
                    asker.show(question);
                }
            }
        };
        self.screen.end_prompt();
        drop(prompt);
        asker.give(runtime, question, answer).await?;
        Ok(Replied::Answered)
    }
}

/// True when the followed run has ended. The caller must see this update.
fn is_end(update: &Update, about: RunId, followee: &FollowedRun) -> bool {
    about == followee.run.id()
        && matches!(update, Update::Event(record) if matches!(record.event, Event::RunFinished(_)))
}
