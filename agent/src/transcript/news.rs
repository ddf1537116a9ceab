//! Messages and results that no model has read yet. Long new results are shortened if all of them
//! would not fit into the context window: part of the fold.

use super::{Transcript, weigh};
use crate::shorten::{self, ASK_AGAIN, shorten};
use posse_protocol::{Message, Part, RunId, Seq, ToolResult};
use std::sync::Arc;

/// A message to the agent that no reply has seen yet.
#[derive(Clone, Debug)]
pub(super) struct News {
    pub(super) seq: Seq,
    pub(super) message: Arc<Message>,
    /// The run that each part is a result of. Empty for other messages, which are never shortened.
    pub(super) of: Vec<Option<RunId>>,
}

impl News {
    /// A message that is not a result.
    pub(super) fn said(seq: Seq, message: Message) -> Self {
        News { seq, message: Arc::new(message), of: Vec::new() }
    }

    /// The result of `run`.
    pub(super) fn result(seq: Seq, message: Arc<Message>, run: RunId) -> Self {
        let of = vec![Some(run); message.parts.len()];
        News { seq, message, of }
    }

    fn parts(&self) -> impl Iterator<Item = (&Part, Option<RunId>)> {
        self.message.parts.iter().zip(self.of.iter().copied())
    }
}

impl Transcript {
    /// The number of bytes to which each new result must be shortened to save `excess` bytes in
    /// total. `None` if no result is long enough.
    pub(crate) fn share_without(&self, excess: usize) -> Option<usize> {
        let all = self.new_results().sum::<usize>();
        shorten::share(self.new_results(), all.saturating_sub(excess))
    }

    /// Half of `share`, or of the longest new result if that is less. `None` if no result is longer.
    pub(crate) fn half_share(&self, share: Option<usize>) -> Option<usize> {
        let longest = self.new_results().max()?;
        let half = share.map_or(longest, |share| share.min(longest)) / 2;
        Some(half.max(shorten::LEAST)).filter(|half| longest > *half)
    }

    /// How many bytes are saved if each new result is shortened to `share`.
    pub(super) fn saved_by(&self, share: usize) -> usize {
        self.new_results().map(|size| size.saturating_sub(share)).sum()
    }

    /// The messages of the next request, with new results shortened to `share` bytes each.
    pub(crate) fn messages_with(&self, share: Option<usize>) -> Vec<Arc<Message>> {
        let Some(share) = share else { return self.messages() };
        let mut shorter = self.clone();
        shorter.shorten_news(share);
        shorter.messages()
    }

    /// Shortens new results to `share` bytes each.
    pub(super) fn shorten_news(&mut self, share: usize) {
        let before = self.news_weight();
        if self.calls.results_of().any(|(part, _)| is_longer(part, share)) {
            let results = self.calls.results_of();
            let results = results.map(|(part, run)| shortened(part, run, share)).collect();
            self.calls.replace_results(results);
        }
        for news in &mut self.inbox {
            if !news.parts().any(|(part, run)| run.is_some() && is_longer(part, share)) {
                continue;
            }
            let part = |(part, run): (&Part, Option<RunId>)| match run {
                Some(_) => shortened(part, run, share),
                None => part.clone(),
            };
            let parts = news.parts().map(part).collect();
            news.message = Arc::new(Message { parts, ..(*news.message).clone() });
        }
        let saved = before.saturating_sub(self.news_weight());
        self.weight.since = self.weight.since.saturating_sub(saved);
    }

    /// Bytes of each text of the new results.
    fn new_results(&self) -> impl Iterator<Item = usize> {
        let told = self.inbox.iter().flat_map(News::parts).filter(|(_, run)| run.is_some());
        self.calls.results_of().chain(told).flat_map(|(part, _)| texts(part)).map(str::len)
    }

    /// The weight of the results and messages that no reply has seen.
    pub(super) fn news_weight(&self) -> usize {
        let results =
            self.calls.results().into_iter().chain(self.inbox.iter().map(|it| &it.message));
        results.map(|message| weigh(&message.parts)).sum()
    }
}

fn texts(part: &Part) -> impl Iterator<Item = &str> {
    let parts = match part {
        Part::ToolResult(result) => result.parts.as_slice(),
        part => std::slice::from_ref(part),
    };
    parts.iter().filter_map(shorten::text_of)
}

fn is_longer(part: &Part, share: usize) -> bool {
    texts(part).any(|text| text.len() > share)
}

/// The result `part` with texts of at most `share` bytes. `run` is the run that it comes from, if any.
fn shortened(part: &Part, run: Option<RunId>, share: usize) -> Part {
    let how = match run {
        Some(run) => format!("resume run {run} and ask for the rest if you need it"),
        None => ASK_AGAIN.to_owned(),
    };
    let short = |part: &Part| {
        let text = shorten::text_of(part).and_then(|text| shorten(text, share, &how));
        text.map_or_else(|| part.clone(), Part::text)
    };
    match part {
        Part::ToolResult(result) => Part::ToolResult(ToolResult {
            parts: result.parts.iter().map(short).collect(),
            ..result.clone()
        }),
        part => short(part),
    }
}
