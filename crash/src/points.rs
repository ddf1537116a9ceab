//! Every fail-point, and a scenario that is sure to pass it. A test compares this list with the
//! sources, so that none is missing.

use super::announce::Telling;
use super::scenario::Scenario;

/// A place in the code where a test build can be told to die.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Point {
    /// Its name, dotted: place, thing, moment.
    pub name: &'static str,
    /// The scenario that passes it.
    pub scenario: Scenario,
    /// How often one process of the scenario is sure to pass it: once, or at least twice.
    pub passes: u32,
}

/// Points that only a database in a file has.
const OF_FILES: [&str; 9] = [
    "store.migrate.step",
    "store.migrate.after",
    "store.presence.announced",
    "store.reserve.taken",
    "store.renew",
    "store.rows.written",
    "store.claim.written",
    "store.dead.freed",
    "store.erase.deleted",
];

impl Point {
    /// Whether a process with a database on a server passes it in its scenario.
    pub(crate) fn is_on_server(&self) -> bool {
        !OF_FILES.contains(&self.name)
    }
}

const fn once(name: &'static str, scenario: Scenario) -> Point {
    Point { name, scenario, passes: 1 }
}

const fn twice(name: &'static str, scenario: Scenario) -> Point {
    Point { name, scenario, passes: 2 }
}

/// Every fail-point.
pub const POINTS: [Point; 66] = [
    // A process opens the database.
    once("store.migrate.step", Scenario::Tools),
    once("store.migrate.after", Scenario::Tools),
    once("store.presence.announced", Scenario::Tools),
    once("store.reserve.taken", Scenario::Tools),
    // A transaction.
    twice("store.begin.after", Scenario::Tools),
    once("store.renew", Scenario::Tools),
    once("store.rows.written", Scenario::Recovery),
    twice("store.commit.before", Scenario::Tools),
    twice("store.commit.after", Scenario::Tools),
    // With one slot, each claim is of one run. A worker with more slots claims several at once.
    twice("store.claim.written", Scenario::TreeNarrow),
    once("store.dead.freed", Scenario::Recovery),
    once("store.depart.begun", Scenario::Tools),
    once("store.depart.left", Scenario::Tools),
    // A run from its start to its end.
    once("run.create.before", Scenario::Tools),
    once("run.create.after", Scenario::Tools),
    twice("run.claimed", Scenario::TreeNarrow),
    once("run.taken_up", Scenario::TreeAnnounce(Telling::Mixed)),
    twice("journal.record.before", Scenario::Tools),
    twice("journal.record.after", Scenario::Tools),
    once("run.parking", Scenario::Tree),
    once("run.parked", Scenario::Chat),
    once("run.stopped", Scenario::Shutdown),
    once("run.finished", Scenario::Tools),
    once("run.left", Scenario::Tools),
    // The loop.
    twice("loop.model.called", Scenario::Tools),
    twice("loop.model.replied", Scenario::Tools),
    twice("loop.tool.started", Scenario::Tools),
    twice("loop.tool.returned", Scenario::Tools),
    once("loop.calls.answered", Scenario::Recovery),
    once("loop.compact.called", Scenario::Compaction),
    once("loop.compact.replied", Scenario::Compaction),
    once("loop.finish.before", Scenario::Tools),
    // Messages to a run.
    once("message.append.before", Scenario::Reopening),
    once("message.append.after", Scenario::Reopening),
    once("cancel.append.before", Scenario::Cancel),
    once("cancel.append.after", Scenario::Cancel),
    // Trees.
    twice("task.start.before", Scenario::Tree),
    twice("task.start.after", Scenario::Tree),
    once("task.resume.before", Scenario::TreeResume),
    once("task.resume.after", Scenario::TreeResume),
    twice("spawn.start.before", Scenario::TreeAnnounce(Telling::Mixed)),
    twice("spawn.start.after", Scenario::TreeAnnounce(Telling::Mixed)),
    once("quiet.append.before", Scenario::TreeAnnounce(Telling::Quiet)),
    once("quiet.append.after", Scenario::TreeAnnounce(Telling::Quiet)),
    twice("announcement.append.before", Scenario::Tree),
    twice("announcement.append.after", Scenario::Tree),
    once("cascade.begun", Scenario::TreeCancel),
    once("cascade.append.before", Scenario::TreeCancel),
    once("cascade.append.after", Scenario::TreeCancel),
    twice("run.forsaken.before", Scenario::TreeForsaken),
    twice("run.forsaken.after", Scenario::TreeForsaken),
    // Tools.
    twice("tool.read.opened", Scenario::Compaction),
    twice("tool.write.temp_created", Scenario::Tools),
    twice("tool.write.temp_written", Scenario::Tools),
    twice("tool.write.renamed", Scenario::Tools),
    twice("tool.write.synced", Scenario::Tools),
    twice("tool.launch.spawned", Scenario::Tools),
    twice("tool.launch.ordered", Scenario::Tools),
    twice("tool.launch.exited", Scenario::Tools),
    // Archiving and removing runs that have ended.
    once("store.erase.deleted", Scenario::Archiving),
    once("archive.log.removed", Scenario::Archiving),
    once("archive.append.before", Scenario::Archiving),
    once("archive.append.after", Scenario::Archiving),
    once("archive.folder.removed", Scenario::Archiving),
    // An orderly shutdown.
    once("shutdown.begun", Scenario::Tools),
    once("shutdown.drained", Scenario::Tools),
];

/// Points that other scenarios are sure to pass too, with another effect there.
pub(crate) const CROSSINGS: [(&str, Scenario); 45] = [
    // The worker of a run that is being cancelled.
    ("tool.launch.exited", Scenario::Cancel),
    ("loop.tool.returned", Scenario::Cancel),
    ("loop.finish.before", Scenario::Cancel),
    ("run.finished", Scenario::Cancel),
    // A run whose transcript begins with a summary.
    ("loop.finish.before", Scenario::Compaction),
    // A run that was reopened, and a session.
    ("loop.tool.started", Scenario::Reopening),
    ("loop.tool.started", Scenario::Chat),
    ("loop.model.replied", Scenario::Chat),
    // A run that receives a message while it works.
    ("message.append.before", Scenario::Steering),
    ("message.append.after", Scenario::Steering),
    ("loop.finish.before", Scenario::Steering),
    // Several processes.
    ("run.create.after", Scenario::Crowd),
    ("store.commit.before", Scenario::Crowd),
    ("store.migrate.step", Scenario::Crowd),
    // A run with subagents.
    ("run.parked", Scenario::Tree),
    ("loop.finish.before", Scenario::Tree),
    ("run.create.after", Scenario::TreeNarrow),
    ("run.claimed", Scenario::Recovery),
    ("store.claim.written", Scenario::Recovery),
    ("task.start.after", Scenario::TreeNarrow),
    ("announcement.append.after", Scenario::TreeResume),
    // A tree that is being cancelled.
    ("cancel.append.after", Scenario::TreeCancel),
    ("loop.calls.answered", Scenario::TreeCancel),
    ("loop.finish.before", Scenario::TreeCancel),
    ("run.finished", Scenario::TreeCancel),
    ("announcement.append.before", Scenario::TreeCancel),
    // Runs in the background.
    ("announcement.append.before", Scenario::TreeAnnounce(Telling::Steer)),
    ("announcement.append.after", Scenario::TreeAnnounce(Telling::Steer)),
    ("announcement.append.before", Scenario::TreeAnnounce(Telling::Followup)),
    ("run.parking", Scenario::TreeAnnounce(Telling::Failing)),
    ("run.taken_up", Scenario::TreeAnnounce(Telling::Failing)),
    ("announcement.append.before", Scenario::TreeAnnounce(Telling::Collect)),
    ("announcement.append.after", Scenario::TreeAnnounce(Telling::Collect)),
    ("run.parked", Scenario::TreeAnnounce(Telling::Failing)),
    ("announcement.append.after", Scenario::TreeAnnounce(Telling::Silent)),
    ("store.commit.before", Scenario::TreeAnnounce(Telling::Mixed)),
    ("loop.finish.before", Scenario::TreeAnnounce(Telling::Mixed)),
    ("announcement.append.before", Scenario::TreeAnnounce(Telling::Nested)),
    ("run.parked", Scenario::TreeAnnounce(Telling::Nested)),
    ("announcement.append.before", Scenario::TreeAnnounce(Telling::Failing)),
    ("announcement.append.after", Scenario::TreeAnnounce(Telling::Failing)),
    ("cancel.append.after", Scenario::TreeAnnounce(Telling::Cancel)),
    ("run.parked", Scenario::TreeAnnounce(Telling::Idle)),
    ("spawn.start.after", Scenario::TreeAnnounce(Telling::Idle)),
    // During an orderly shutdown.
    ("shutdown.drained", Scenario::Shutdown),
];

/// The point with this name.
pub fn point(name: &str) -> Option<&'static Point> {
    POINTS.iter().find(|point| point.name == name)
}

/// The names of the fail-points in a source text.
pub fn names_in(source: &str) -> impl Iterator<Item = &str> {
    source.split("fail_point!(\"").skip(1).filter_map(|rest| rest.split('"').next())
}
