//! What can be wrong after a crash.

use std::fmt;

/// A promise of the runtime that the harness looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Promise {
    /// A run whose id was printed is there afterwards, and only once.
    NoRunLost,
    /// What was shown of a run is in its log.
    ShownIsStored,
    /// Every run ends, or waits for its user.
    NoRunStuck,
    /// A run ends as its log says it must.
    RightOutcome,
    /// A tool has its effect once when it returned, at most once otherwise.
    EffectAtMostOnce,
    /// Whoever looks sees the old content of a file or the new, never a part.
    WholeFiles,
    /// Every tool call is answered exactly once.
    AnsweredOnce,
    /// Nothing follows the end but a message.
    NothingAfterEnd,
    /// Positions have no gaps, and every event stands where it may.
    OrderedLog,
    /// What is about to be done is stored before it is done.
    IntentFirst,
    /// A message that was taken is in the log exactly once, and is answered.
    MessageOnce,
    /// Parents and children know each other, and each call has one child at most.
    KinAgree,
    /// The end of a run is told once to whoever waits for it, with its result.
    ToldOnce,
    /// The end of a run in the background is told once, to whom and how it should be.
    AnnouncedOnce,
    /// What a run was told of is known to its model once.
    KnownOnce,
    /// No run is done while others are at work of whose ends it will be told.
    AwaitsAll,
    /// Nothing starts or runs on below a run that was told to stop.
    StopsBelow,
    /// The database opens and every hash is right.
    SoundDatabase,
    /// The model is sent nothing that its provider would refuse.
    ValidRequests,
    /// Nothing panics.
    NoPanic,
    /// No process outlives its owner.
    NoProcessLeft,
    /// Commands end as they document.
    RightExit,
    /// Everything ends in time.
    InTime,
    /// A kill happens where it was planned.
    PointReached,
}

/// All promises, in the order of the summary.
pub const PROMISES: [Promise; 24] = [
    Promise::NoRunLost,
    Promise::ShownIsStored,
    Promise::NoRunStuck,
    Promise::RightOutcome,
    Promise::EffectAtMostOnce,
    Promise::WholeFiles,
    Promise::AnsweredOnce,
    Promise::NothingAfterEnd,
    Promise::OrderedLog,
    Promise::IntentFirst,
    Promise::MessageOnce,
    Promise::KinAgree,
    Promise::ToldOnce,
    Promise::AnnouncedOnce,
    Promise::KnownOnce,
    Promise::AwaitsAll,
    Promise::StopsBelow,
    Promise::SoundDatabase,
    Promise::ValidRequests,
    Promise::NoPanic,
    Promise::NoProcessLeft,
    Promise::RightExit,
    Promise::InTime,
    Promise::PointReached,
];

impl fmt::Display for Promise {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Promise::NoRunLost => "no acknowledged run lost",
            Promise::ShownIsStored => "nothing shown before stored",
            Promise::NoRunStuck => "no run stuck",
            Promise::RightOutcome => "the right outcome",
            Promise::EffectAtMostOnce => "tool effects at most once",
            Promise::WholeFiles => "whole files",
            Promise::AnsweredOnce => "calls answered exactly once",
            Promise::NothingAfterEnd => "nothing after the end",
            Promise::OrderedLog => "ordered log",
            Promise::IntentFirst => "intent stored before effect",
            Promise::MessageOnce => "messages taken once, answered",
            Promise::KinAgree => "parents and children agree",
            Promise::ToldOnce => "results told exactly once",
            Promise::AnnouncedOnce => "ends announced exactly once",
            Promise::KnownOnce => "announcements known exactly once",
            Promise::AwaitsAll => "nobody done before those below",
            Promise::StopsBelow => "nothing runs below what stops",
            Promise::SoundDatabase => "sound database",
            Promise::ValidRequests => "valid requests to the model",
            Promise::NoPanic => "no panic",
            Promise::NoProcessLeft => "no process left behind",
            Promise::RightExit => "the right exit",
            Promise::InTime => "everything in time",
            Promise::PointReached => "fail-point reached",
        })
    }
}

/// A promise that was not kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Which promise.
    pub promise: Promise,
    /// What was seen instead.
    pub detail: String,
}

impl Violation {
    pub(crate) fn of(promise: Promise, detail: impl Into<String>) -> Self {
        Violation { promise, detail: detail.into() }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}: {}", self.promise, self.detail)
    }
}
