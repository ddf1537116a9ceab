//! Questions that runs ask people, and the answers.
//!
//! A question is an event in the run's log, and so is its answer. A crash loses neither, and every process with access
//! to the store can answer. An answer applies only to the exact call that was asked about.

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

/// The maximum number of runs to read questions from.
const MOST: usize = 1_000;

/// A call that a person is to decide about.
#[derive(Clone, Debug, PartialEq)]
pub struct Question {
    /// The run that asks.
    pub run: RunId,
    /// Its agent.
    pub agent: AgentName,
    /// How many runs are above it.
    pub depth: u32,
    /// The label of the run.
    pub about: String,
    /// When it was asked, in milliseconds since 1970.
    pub at: u64,
    /// The question.
    pub asked: ApprovalAsked,
    /// The tool that the run wants to call.
    pub tool: ToolFacts,
}

impl Runtime {
    /// The open questions of all runs, or of the tree of `root`, the newest run's first.
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

    /// The open questions of `run` itself, in order.
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
        // Some models reuse the ids of calls. The last question about an id is the open one.
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

    /// Answers the question about `call` with this `digest`, in the name of `by`. This runtime then executes the run,
    /// unless another does.
    ///
    /// # Errors
    /// When there is no such run, when the question is not open (already answered, the run continued or ended, or the
    /// call is a different one), or when the rule in the answer is invalid or does not match the call.
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

    /// Like [`Runtime::decide`], but leaves it to other workers to execute the run.
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

    /// Refuses a rule that would not allow the call in question. The rule would stay in the log, and its author would
    /// believe that it applies.
    async fn check_rule(
        &self,
        run: RunId,
        call: &CallId,
        digest: &str,
        rule: &str,
    ) -> Result<(), Error> {
        let questions = self.questions_of(run).await?;
        let is_it = |it: &&Question| it.asked.call == *call && it.asked.digest == digest;
        // The store refuses answers to questions that are not open, with the reason.
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
        // The process that answers may not be the one that executes the run: it may lack a launcher, and so a shell.
        let mut facts = tools_of(grant);
        facts.extend(self.config().tools.iter().map(|tool| tool.spec().facts.clone()));
        let policy = authority::policy(grant, self.config(), &facts.into())?;
        match policy.misses(rule, &question.asked.tool, made) {
            Some(why) => Err(Error::InvalidInput(why)),
            None => Ok(()),
        }
    }
}

/// The facts of the tool `name`, or a minimal entry if it is not among `tools`.
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
