//! What can be wrong after a crash.

use std::fmt;

/// A promise of the runtime that the harness checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Promise {
    /// A run whose id was printed exists afterwards, once.
    NoRunLost,
    /// What was shown of a run is in its log.
    ShownIsStored,
    /// Every run ends, or waits for its user.
    NoRunStuck,
    /// A run ends as its log says it must.
    RightOutcome,
    /// A tool has its effect once when it returned, at most once otherwise.
    EffectAtMostOnce,
    /// A file has its old content or its new content, never a part of it.
    WholeFiles,
    /// Every tool call is answered exactly once.
    AnsweredOnce,
    /// Nothing follows the end but a message.
    NothingAfterEnd,
    /// Positions have no gaps, and every event stands where it may.
    OrderedLog,
    /// The intent is stored before the effect.
    IntentFirst,
    /// An accepted message is in the log exactly once, and is answered.
    MessageOnce,
    /// The logs of parents and children agree, and each call has one child at most.
    KinAgree,
    /// The call that waits for a run gets its result once.
    ToldOnce,
    /// The end of a background child is announced once, to the right run and in the right way.
    AnnouncedOnce,
    /// The model of a run sees each announcement once.
    KnownOnce,
    /// No run completes before the announcements that it expects.
    AwaitsAll,
    /// No run starts or works on below a run that was asked to stop.
    StopsBelow,
    /// Only the owner of a run writes its steps, and nobody takes a run from a living owner.
    OwnersAlone,
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
pub const PROMISES: [Promise; 25] = [
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
    Promise::OwnersAlone,
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
            Promise::OwnersAlone => "steps written by their owners",
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
