//! `posse runs questions` and `posse runs answer`: open questions of runs, and their answers.

use crate::args::AnswerOptions;
use crate::clean::{clean_line, exact};
use crate::commands::asking::{AnswerResult, ContinuedBy, describe, give};
use crate::commands::rest::who_continues;
use crate::common::Common;
use crate::exit::{Code, Failure};
use crate::{format, print};
use posse::protocol::Approval;
use posse::{Question, Runtime};
use serde_json::{Value, json};

pub async fn list(common: &Common, runtime: &Runtime, run: Option<&str>) -> Result<Code, Failure> {
    let root = match run {
        Some(run) => Some(runtime.find(run).await?.family.root),
        None => None,
    };
    let questions = runtime.questions(root).await?;
    if common.global.json {
        print::json_pretty(&questions.iter().map(shown).collect::<Vec<_>>())?;
        return Ok(Code::Done);
    }
    for question in &questions {
        print::line(describe(question))?;
        for (answer, command) in suggested(question) {
            print::line(format!("  {answer:14}{command}"))?;
        }
    }
    if questions.is_empty() {
        print::note("no run asks anything");
    }
    Ok(Code::Done)
}

/// The least and the suggested number of characters of a digest in a command.
const DIGEST: (usize, usize) = (8, 12);

/// The possible answers, with commands that answer exactly this question.
fn suggested(question: &Question) -> Vec<(&'static str, String)> {
    let Question { run, asked, .. } = question;
    let digest: String = asked.digest.chars().take(DIGEST.1).collect();
    let call = clean_line(&asked.call.0, 80);
    let command = format!("posse runs answer {} --call {call} --digest {digest}", run.short());
    let mut answers = vec![("allow once:", format!("{command} --once"))];
    if let Some(rule) = &asked.rule {
        let rule = exact(rule);
        answers.push(("for this run:", format!("{command} --for-run    # {rule}")));
        answers.push(("always:", format!("{command} --always     # {rule}")));
    }
    answers.push(("deny:", format!("{command} --no \"why\"")));
    answers
}

/// Keeps the `questions` whose digest begins with `digest`. Fails if there are only others.
fn retain_shown(questions: &mut Vec<Question>, digest: &str) -> Result<(), Failure> {
    if digest.len() < DIGEST.0 {
        let message = format!("a digest has at least {} characters here", DIGEST.0);
        return Err(Failure::usage(message).hint("`posse runs questions` shows it"));
    }
    let Some(other) = questions.first().cloned() else { return Ok(()) };
    questions.retain(|question| question.asked.digest.starts_with(digest));
    if questions.is_empty() {
        let message = format!(
            "run {} asks something else than what was shown: nothing that it asks has the digest {}",
            other.run.short(),
            clean_line(digest, 80),
        );
        return Err(Failure::usage(message).hint("`posse runs questions` shows what it asks now"));
    }
    Ok(())
}

pub async fn answer(
    common: &Common,
    runtime: &Runtime,
    options: &AnswerOptions,
) -> Result<Code, Failure> {
    let run = runtime.find(&options.run).await?.id;
    let mut questions = runtime.questions_of(run).await?;
    if let Some(call) = &options.call {
        questions.retain(|question| question.asked.call.0.starts_with(call.as_str()));
    }
    if let Some(digest) = &options.digest {
        retain_shown(&mut questions, digest)?;
    }
    let question = match &questions[..] {
        [question] => question,
        [] => {
            return Err(Failure::usage(format!("run {} has no such question", run.short()))
                .hint("`posse runs questions` lists the questions"));
        }
        several => {
            let calls: Vec<&str> = several.iter().map(|it| &*it.asked.call.0).collect();
            return Err(Failure::usage(format!(
                "run {} asks about {} calls; name one with --call: {}",
                run.short(),
                calls.len(),
                calls.join(", ")
            )));
        }
    };
    let settings = common.user_settings();
    let rule = || {
        question.asked.rule.clone().ok_or_else(|| {
            Failure::usage("this call is too specific for a rule").hint("use --once")
        })
    };
    let answer = match (options.once, options.for_run, options.always, &options.no) {
        (true, ..) => Approval::Once,
        (_, true, ..) => Approval::Run { rule: rule()? },
        (_, _, true, _) => Approval::Always { rule: rule()? },
        (.., Some(reason)) => Approval::Denied { reason: reason.clone() },
        (.., None) => {
            print::line(describe(question))?;
            let answers = match question.asked.rule {
                Some(_) => "--once, --for-run, --always or --no",
                None => "--once or --no",
            };
            return Err(Failure::usage(format!("there is no answer: add {answers}")));
        }
    };
    let given =
        give(runtime, question, answer, settings.as_deref(), ContinuedBy::Elsewhere).await?;
    if let AnswerResult::TooLate(why) = given {
        return Err(Failure::usage(why).hint("`posse runs questions` shows what is asked now"));
    }
    if !common.global.quiet && !common.global.json {
        let (run, tool) = (run.short(), clean_line(&question.asked.tool, 80));
        let row = runtime.find(&question.run.to_string()).await?;
        let next = who_continues(&row, common.daemon().await.is_some());
        let next = next.map_or_else(String::new, |how| format!("; {how}"));
        print::note(format!("run {run} has its answer about {tool}{next}"));
    }
    Ok(Code::Done)
}

fn shown(question: &Question) -> Value {
    let Question { run, agent, depth, about, at, asked, .. } = question;
    json!({
        "run": run, "agent": agent, "depth": depth, "about": about, "at": format::timestamp(*at),
        "call": asked.call, "tool": asked.tool, "digest": asked.digest, "shown": asked.shown,
        "by": asked.by, "rule": asked.rule,
    })
}
