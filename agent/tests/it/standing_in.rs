//! Answers that the loop gives in place of others, who may give their own at any moment: of the
//! answers to a call one is in the log.

use crate::answers::Case;
use async_trait::async_trait;
use posse_agent::protocol::*;
use posse_agent::{Ended, Expect, Journal, JournalError, run};
use std::sync::{Mutex, MutexGuard};
use tokio_util::sync::CancellationToken;

/// What happens at a moment that the loop does not choose.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Surprise {
    /// Someone answers the first call.
    Answer,
    /// The process is told to end.
    Stop,
}

/// How soon the loop hears that others have appended something.
#[derive(Clone, Copy, Debug, PartialEq)]
enum News {
    AtOnce,
    /// Not before it writes or reads.
    Late,
}

/// A log in memory, in which a surprise happens when the loop turns to it for the n-th time.
struct Restless {
    state: Mutex<State>,
    news: News,
    stop: CancellationToken,
}

struct State {
    records: Vec<Record>,
    /// Turns until the surprise.
    left: usize,
    surprise: Option<Surprise>,
    /// The last event that the loop has read or written.
    known: Seq,
}

impl State {
    fn push(&mut self, event: Event) {
        let (run, seq) = (RunId::from_u128(1), Seq(self.records.len() as u64 + 1));
        let extra = Extra::default();
        self.records.push(Record { run, seq, at: 0, version: 1, event, extra });
    }

    fn has_ended(&self) -> bool {
        self.records.iter().any(|record| matches!(record.event, Event::RunFinished(_)))
    }
}

impl Restless {
    fn turn(&self) -> MutexGuard<'_, State> {
        let mut state = self.state.lock().unwrap();
        if state.left > 0 {
            state.left -= 1;
            return state;
        }
        match state.surprise.take() {
            Some(Surprise::Answer) if !state.has_ended() => state.push(answer("call-1")),
            Some(Surprise::Stop) => self.stop.cancel(),
            _ => {}
        }
        state
    }
}

#[async_trait]
impl Journal for Restless {
    async fn record(&self, events: Vec<Event>, expect: Expect) -> Result<Seq, JournalError> {
        let mut state = self.turn();
        let last = Seq(state.records.len() as u64);
        if matches!(expect, Expect::Last(expected) if expected != last) {
            return Err(JournalError::Moved);
        }
        events.into_iter().for_each(|event| state.push(event));
        state.known = Seq(state.records.len() as u64);
        Ok(last.next())
    }

    async fn read_after(&self, seq: Seq) -> Result<Vec<Record>, JournalError> {
        let mut state = self.turn();
        state.known = Seq(state.records.len() as u64);
        Ok(state.records[seq.0 as usize..].to_vec())
    }

    fn tail(&self) -> Seq {
        let state = self.turn();
        match self.news {
            News::AtOnce => Seq(state.records.len() as u64),
            News::Late => state.known,
        }
    }

    async fn changed(&self, _seq: Seq) {
        std::future::pending().await
    }
}

fn answer(call: &str) -> Event {
    Event::ToolFinished(ToolFinished {
        call: call.into(),
        output: ToolOutput::text("the other's"),
        ending: Ending::Returned,
        by: String::new(),
        took_ms: 0,
        worked_ms: 0,
        extra: Extra::default(),
    })
}

/// A run with three calls that others will answer, told to stop; the surprise comes at turn `left`.
/// Returns how it ended, the answers in the log, and whether the surprise came before the end.
async fn play(surprise: Surprise, left: usize, news: News) -> (Ended, Vec<ToolFinished>, bool) {
    let mut case = Case::new(false, None, Limits::default(), &["done"]);
    case.log.reply_with_calls(3);
    for call in ["call-1", "call-2", "call-3"] {
        case.log.start_call(call.into(), true);
        case.log.leave_pending(call.into());
    }
    case.log.cancel(CancelScope::Run);
    let (records, surprise) = (case.log.records.clone(), Some(surprise));
    let state = Mutex::new(State { records, left, surprise, known: Seq::ZERO });
    let stop = CancellationToken::new();
    let journal = Restless { state, news, stop: stop.clone() };
    let ended = run(&case.agent, &journal, &stop).await.unwrap();
    let state = journal.state.into_inner().unwrap();
    let answers = state.records.iter().filter_map(|record| match &record.event {
        Event::ToolFinished(answer) => Some(answer.clone()),
        _ => None,
    });
    (ended, answers.collect(), state.surprise.is_none())
}

#[tokio::test]
async fn a_call_of_a_cancelled_run_is_answered_once_whenever_the_other_answer_comes() {
    for news in [News::AtOnce, News::Late] {
        let (mut theirs, mut ours) = (0, 0);
        for turn in 0.. {
            let (ended, answers, came) = play(Surprise::Answer, turn, news).await;
            assert!(matches!(ended, Ended::Finished(Outcome::Cancelled { .. })), "{ended:?}");
            let mut calls: Vec<&str> = answers.iter().map(|it| it.call.0.as_str()).collect();
            calls.sort_unstable();
            assert_eq!(calls, ["call-1", "call-2", "call-3"], "turn {turn}, {news:?}");
            let first = answers.iter().find(|it| it.call.0 == "call-1").unwrap();
            match first.ending {
                Ending::Returned => theirs += 1,
                _ => ours += 1,
            }
            if !came {
                break;
            }
        }
        assert!(theirs > 2 && ours > 0, "{news:?}: {theirs} and {ours}");
    }
}

#[tokio::test]
async fn a_run_that_is_stopped_before_its_end_leaves_the_answers_to_others() {
    let mut stopped = 0;
    for turn in 0.. {
        let (ended, answers, came) = play(Surprise::Stop, turn, News::AtOnce).await;
        match ended {
            Ended::Stopped => {
                stopped += 1;
                assert_eq!(answers, [], "turn {turn}");
            }
            ended => assert!(matches!(ended, Ended::Finished(_)), "{ended:?}"),
        }
        if !came {
            break;
        }
    }
    assert!(stopped > 1, "{stopped}");
}
