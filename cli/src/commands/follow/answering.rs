//! Asking what a run wants to know while it is followed. What happens meanwhile is shown above the
//! line in which the person answers.

use super::{Followee, Viewer};
use crate::commands::asking::{self, Asker, Said, understood};
use crate::exit::Failure;
use crate::print;
use crate::signals::Signal;
use posse::protocol::{Approval, CallId, Event};
use posse::{Question, RunId, Runtime, Update};

/// What came of asking.
enum Replied {
    /// Every question has its answer.
    Answered,
    /// A signal came instead.
    Signal(Signal),
    /// The input has ended: there is nobody.
    Gone,
}

/// Calls that are asked about.
type Known = Vec<(RunId, CallId)>;

impl Viewer {
    /// Asks what the tree of the run wants to know, if there is somebody. Returns the signal that
    /// came instead of an answer.
    pub(super) async fn ask(
        &mut self,
        runtime: &Runtime,
        followee: &mut Followee,
    ) -> Result<Option<Signal>, Failure> {
        let Some(asker) = self.asker.take() else { return Ok(None) };
        // The question reads the terminal itself; what was typed before does not answer it.
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
            // Nobody answers what is typed as long as the question is open.
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
                // It is asked again when the run is followed again.
                followee.may_ask = true;
                Ok(Some(signal))
            }
        }
    }

    async fn ask_all(
        &mut self,
        asker: &Asker,
        runtime: &Runtime,
        followee: &mut Followee,
    ) -> Result<Replied, Failure> {
        let root = runtime.find(&followee.run.id().to_string()).await?.family.root;
        let named = |question: &Question| (question.run, question.asked.call.clone());
        // Those that come later are asked when what leads to them has been shown.
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
        }
    }

    /// Asks until the answer is understood, or somebody else has given it.
    async fn ask_one(
        &mut self,
        asker: &Asker,
        runtime: &Runtime,
        followee: &mut Followee,
        question: &Question,
        known: &mut Known,
    ) -> Result<Replied, Failure> {
        let mut prompt = asker.put(question);
        let mut withdrawn = std::pin::pin!(asking::withdrawn(runtime, question));
        // Where lines cannot be drawn anew, what happens is shown when the person has answered.
        let mut listens = prompt.line().is_some();
        let answer = loop {
            if let Some(line) = prompt.line() {
                self.screen.prompt(line);
            }
            tokio::select! {
                biased;
                signal = self.signals.next() => {
                    prompt.close().await;
                    return Ok(Replied::Signal(signal));
                }
                said = prompt.next() => match said {
                    Said::Nothing => {}
                    Said::Gone => return Ok(Replied::Gone),
                    Said::No => {
                        if let Some(line) = prompt.line() {
                            self.screen.prompt(format!("{line}no"));
                        }
                        break Approval::Denied { reason: String::new() };
                    }
                    Said::Line(line) => match understood(&line, question) {
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
                update = followee.next(), if listens => match update {
                    Some(Ok((about, update))) if is_end(&update, about, followee) => {
                        followee.ahead.push_front((about, update));
                        listens = false;
                    }
                    Some(update) => {
                        let (about, update) = update?;
                        if let Update::Event(record) = &update
                            && let Event::ApprovalAsked(asked) = &record.event
                        {
                            known.push((about, asked.call.clone()));
                        }
                        self.show(followee, about, &update)?;
                    }
                    None => listens = false,
                },
            }
        };
        self.screen.end_prompt();
        drop(prompt);
        asker.give(runtime, question, answer).await?;
        Ok(Replied::Answered)
    }
}

/// True when the run that is followed has ended, which whoever follows it has to hear.
fn is_end(update: &Update, about: RunId, followee: &Followee) -> bool {
    about == followee.run.id()
        && matches!(update, Update::Event(record) if matches!(record.event, Event::RunFinished(_)))
}
