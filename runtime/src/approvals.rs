//! Questions that runs ask people, and the answers.
//!
//! A question is an event in the run's log, and so is its answer: neither is lost with a process,
//! and whoever can reach the store can answer. An answer is bound to the very call it is about.

use crate::authority;
use crate::error::Error;
use crate::runtime::Runtime;
use crate::tool_facts::{ToolFacts, tools_of};
use posse_agent::Transcript;
use posse_protocol::{
    AgentName, Approval, ApprovalAsked, ApprovalGiven, CallId, Effect, Event, Extra, Part, Record,
    RunId, Seq, ToolCall,
};
use posse_store::{Filter, Kin, Unfinished};

/// Questions that are looked at, at most.
const MOST: usize = 1_000;

/// A call that a person is to decide about.
#[derive(Clone, Debug, PartialEq)]
pub struct Question {
    /// The run that asks.
    pub run: RunId,
    /// Its agent.
    pub agent: AgentName,
    /// How many runs stand above it.
    pub depth: u32,
    /// What it is about.
    pub about: String,
    /// When it was asked, in milliseconds since 1970.
    pub at: u64,
    /// What is asked.
    pub asked: ApprovalAsked,
    /// The tool that is to be called.
    pub tool: ToolFacts,
}

impl Runtime {
    /// The questions that nobody has answered, the newest run's first: of `root` and everything
    /// below it, or of all.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn questions(&self, root: Option<RunId>) -> Result<Vec<Question>, Error> {
        let kin = match root {
            Some(root) => Kin::TreeOf(root),
            None => Kin::All,
        };
        let filter =
            Filter { kin, unfinished: Unfinished::Asking, limit: MOST, ..Filter::default() };
        let mut questions = Vec::new();
        for row in self.list(&filter).await? {
            questions.extend(self.questions_of(row.id).await?);
        }
        Ok(questions)
    }

    /// The questions of `run` itself that nobody has answered, in its order.
    ///
    /// # Errors
    /// When there is no such run, or the store fails.
    pub async fn questions_of(&self, run: RunId) -> Result<Vec<Question>, Error> {
        let records = self.read(run, Seq::ZERO, usize::MAX).await?;
        let transcript = Transcript::of(&records);
        let Some(started) = transcript.started() else { return Ok(Vec::new()) };
        let depth = started.parent.as_ref().map_or(0, |parent| parent.ancestors.len());
        let open = |asked: &ApprovalAsked| {
            transcript
                .questions()
                .any(|(call, digest)| *call == asked.call && digest == asked.digest)
        };
        let tools = tools_of(&started.grant);
        let mut questions: Vec<Question> = Vec::new();
        // Some models use the ids of calls again: the last question of an id is the open one.
        for record in records.iter().rev() {
            let Event::ApprovalAsked(asked) = &record.event else { continue };
            if open(asked) && questions.iter().all(|known| known.asked.call != asked.call) {
                questions.push(Question {
                    run,
                    agent: started.agent.name.clone(),
                    depth: u32::try_from(depth).unwrap_or(u32::MAX),
                    about: started.label.clone(),
                    at: record.at,
                    asked: (**asked).clone(),
                    tool: known(&tools, &asked.tool),
                });
            }
        }
        questions.reverse();
        Ok(questions)
    }

    /// Answers the question about `call` whose digest is `digest`, in the name of `by`. This runtime
    /// then executes the run, unless another does.
    ///
    /// # Errors
    /// When there is no such run, or nobody is asked about that very call: it was answered, the
    /// run went on or ended, or the call is another; or when the answer brings a rule that cannot be
    /// kept, or that does not mean that call.
    pub async fn decide(
        &self,
        run: RunId,
        call: CallId,
        digest: &str,
        answer: Approval,
        by: &str,
    ) -> Result<(), Error> {
        self.post_decision(run, call, digest, answer, by).await?;
        self.inner.supervisor.adopt(run);
        Ok(())
    }

    /// The same, and leaves it to others to execute the run.
    ///
    /// # Errors
    /// As [`Runtime::decide`].
    pub async fn post_decision(
        &self,
        run: RunId,
        call: CallId,
        digest: &str,
        answer: Approval,
        by: &str,
    ) -> Result<(), Error> {
        if let Approval::Run { rule } | Approval::Always { rule } = &answer {
            self.check_rule(run, &call, digest, rule).await?;
        }
        let given = Event::ApprovalGiven(ApprovalGiven {
            call: call.clone(),
            digest: digest.to_owned(),
            answer,
            by: by.to_owned(),
            extra: Extra::default(),
        });
        let asked = |(open, bound): (&CallId, &str)| *open == call && bound == digest;
        let against = |transcript: &Transcript, _: &[Record]| {
            let shown: String = call.0.chars().take(80).collect();
            (!transcript.questions().any(asked)).then(|| {
                format!(
                    "run {run} does not ask about call `{shown}` as it was shown: it was answered, or \
                     the run went on"
                )
            })
        };
        self.append_unless(run, &given, against).await
    }

    /// Refuses a rule that would not have allowed the call that is asked about: it stays in the log,
    /// and whoever gave it believes that it holds.
    async fn check_rule(
        &self,
        run: RunId,
        call: &CallId,
        digest: &str,
        rule: &str,
    ) -> Result<(), Error> {
        let questions = self.questions_of(run).await?;
        let is_it = |it: &&Question| it.asked.call == *call && it.asked.digest == digest;
        // What is not asked is refused by whoever stores it, who knows why.
        let Some(question) = questions.iter().find(is_it) else { return Ok(()) };
        if question.asked.rule.as_deref() == Some(rule) {
            return Ok(());
        }
        let records = self.read(run, Seq::ZERO, usize::MAX).await?;
        let Some(grant) = records.iter().find_map(|record| match &record.event {
            Event::RunStarted(started) => Some(&started.grant),
            _ => None,
        }) else {
            return Ok(());
        };
        let made = records.iter().rev().find_map(|record| made(&record.event, call, digest));
        let Some(made) = made else { return Ok(()) };
        // Whoever answers need not be who executes it: it may have no launcher, and so no shell.
        let mut facts = tools_of(grant);
        facts.extend(self.config().tools.iter().map(|tool| tool.spec().facts.clone()));
        let policy = authority::policy(grant, self.config(), &facts.into())?;
        match policy.misses(rule, &question.asked.tool, made) {
            Some(why) => Err(Error::InvalidInput(why)),
            None => Ok(()),
        }
    }
}

/// The one of `tools` that is called `name`, or one of which nothing else is known.
fn known(tools: &[ToolFacts], name: &str) -> ToolFacts {
    let known = tools.iter().find(|tool| tool.name == name);
    known.cloned().unwrap_or_else(|| ToolFacts::new(name, Effect::Execute))
}

/// The call `id` with this digest, if `event` is the reply that made it.
fn made<'e>(event: &'e Event, id: &CallId, digest: &str) -> Option<&'e ToolCall> {
    let Event::ModelReplied(replied) = event else { return None };
    replied.message.parts.iter().find_map(|part| match part {
        Part::ToolCall(call) if call.id == *id && posse_agent::digest(call) == digest => Some(call),
        _ => None,
    })
}
