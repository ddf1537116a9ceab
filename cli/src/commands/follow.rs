//! Follows runs until they end or are idle, or until a signal arrives.

mod answering;
pub mod queue;
mod stopping;
mod warnings;

use super::Common;
use super::asking::Asker;
use super::rest::at_rest;
use super::runs::PAGE;
use super::typing::{KeyRequest, Typing};
use crate::clean::clean_line;
use crate::contact::Lines;
use crate::exit::{Code, Failure};
use crate::print::{self, FailureFormat};
use crate::screen::{Screen, Volume};
use crate::signals::{Signal, Signals};
use crate::spending::is_unpriced;
use posse::is_open;
use posse::protocol::{Delta, Event, Outcome, Record, Sender, Seq};
use posse::views::Tree;
use posse::{Events, RunHandle, RunId, RunRow, Runtime, Status, TreeEvents, Update};
use serde::Serialize;
use std::collections::{HashSet, VecDeque};
use std::time::Duration;
use tokio::time::Instant;

/// The output format for a run.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// For people.
    Screen,
    /// One JSON object at the end.
    Json,
    /// Every update as a line of JSON.
    StreamJson,
}

impl Form {
    /// The format that the options select.
    pub fn of(common: &Common, stream_json: bool) -> Self {
        match (common.global.json, stream_json) {
            (true, _) => Form::Json,
            (_, true) => Form::StreamJson,
            _ => Form::Screen,
        }
    }
}

/// Why following ended.
pub enum Followed {
    /// The run ended.
    Ended(Outcome),
    /// The run waits for a new event.
    Rests(Box<RunRow>),
    /// This signal arrived.
    Signal(Signal),
}

/// How long to follow a run.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Until {
    /// Until it ends or waits.
    Rest,
    /// Until it ends, however often it waits before.
    End,
}

/// A run that is followed with its subagents, and the position reached.
pub struct FollowedRun {
    pub run: RunHandle,
    events: TreeEvents,
    shown: Seq,
    /// Updates that arrived while the run was not followed.
    ahead: VecDeque<(RunId, Update)>,
    /// The epoch of this process's claim on the run, once this process executes it.
    claim: Option<u64>,
    /// The run may have asked a question before it was followed, so no coming event mentions it.
    may_ask: bool,
    /// The run has events from before it was followed.
    is_old: bool,
    /// True when the process of the run was gone at the last check. `None`: the command does not check.
    pub orphan: Option<bool>,
    /// The person knows for which worker the queued run waits.
    knows_worker: bool,
}

/// What reached an idle run.
pub enum Arrival {
    /// A child has ended.
    End,
    /// A child has ended, and the run hears of it when it next works.
    Recorded,
    /// A person sent a message.
    Message,
    /// A subagent asks a question.
    Question,
}

/// The positions up to which a run and its active subagents were shown.
pub struct ShownPositions {
    after: Seq,
    below: Vec<(RunId, Seq)>,
}

impl FollowedRun {
    /// Follows `run` from its beginning.
    pub fn new(run: RunHandle) -> Self {
        let events = run.tree_events(Seq::ZERO);
        FollowedRun::from(run, events, Seq::ZERO)
    }

    /// Follows a run that was just started, and its `events` from its beginning.
    pub fn started(run: RunHandle, events: Events) -> Self {
        let events = TreeEvents::new(run.clone(), events);
        FollowedRun::from(run, events, Seq::ZERO)
    }

    /// Follows `run` from the position where it was recalled.
    pub fn again(run: RunHandle, recalled: ShownPositions) -> Self {
        let mut events = run.tree_events(recalled.after);
        recalled.below.into_iter().for_each(|(run, after)| events.include(run, after));
        FollowedRun {
            may_ask: true,
            is_old: true,
            ..FollowedRun::from(run, events, recalled.after)
        }
    }

    fn from(run: RunHandle, events: TreeEvents, shown: Seq) -> Self {
        let ahead = VecDeque::new();
        let (claim, may_ask, is_old, orphan, knows_worker) = (None, false, false, None, false);
        FollowedRun { run, events, shown, ahead, claim, may_ask, is_old, orphan, knows_worker }
    }

    /// True when the run or a subagent may have an open question.
    pub fn may_ask(&self) -> bool {
        self.may_ask
    }

    /// Waits until the run, which is not followed now, gets a message, or until a subagent asks a
    /// question. The next call of [`Viewer::follow`] shows all updates. The future may
    /// be dropped while it waits.
    pub async fn told(&mut self) -> Result<Arrival, Failure> {
        loop {
            let Some(update) = self.events.next().await else {
                return std::future::pending().await;
            };
            let (about, update) = update?;
            let Update::Event(record) = &update else { continue };
            let told = match &record.event {
                event if is_question(event) => Some(Arrival::Question),
                event => told_by(event).filter(|_| about == self.run.id()),
            };
            self.ahead.push_back((about, update));
            if let Some(told) = told {
                return Ok(told);
            }
        }
    }
}

impl FollowedRun {
    async fn next(&mut self) -> Option<Result<(RunId, Update), posse::Error>> {
        match self.ahead.pop_front() {
            Some(heard) => Some(Ok(heard)),
            None => self.events.next().await,
        }
    }
}

fn is_question(event: &Event) -> bool {
    matches!(event, Event::ApprovalAsked(_))
}

/// How long a question waits for parallel events, so that these are shown above it.
const SOON: Duration = Duration::from_millis(300);

/// Waits until `moment`, or for ever if it is `None`.
async fn reached(moment: Option<Instant>) {
    match moment {
        Some(moment) => tokio::time::sleep_until(moment).await,
        None => std::future::pending().await,
    }
}

/// A delta as a line of JSON.
#[derive(Serialize)]
struct DeltaLine<'a> {
    run: RunId,
    #[serde(flatten)]
    delta: &'a Delta,
}

/// Shows runs, and listens for signals meanwhile.
pub struct Viewer {
    pub form: Form,
    /// The format of failures.
    tell: FailureFormat,
    pub screen: Screen,
    pub signals: Signals,
    /// Asks the person at the terminal, if there is one.
    asker: Option<Asker>,
    /// The text that the person types meanwhile; read in a chat only.
    pub typing: Typing,
    /// Leave when the input ends at a question: a chat could not continue.
    pub leaves_questions: bool,
    /// The interruption by a person was stored, or at least tried to be.
    interrupted: bool,
    /// Says when the server of the database is away.
    lines: Lines,
}

impl Viewer {
    /// A viewer that only watches: an answer here does not make this process execute the run.
    pub fn watching(common: &Common, form: Form) -> Result<Self, Failure> {
        let viewer = Viewer::new(common, form)?;
        let asker = viewer.asker.map(Asker::watching);
        Ok(Viewer { asker, ..viewer })
    }

    pub fn new(common: &Common, form: Form) -> Result<Self, Failure> {
        let volume = match (form, common.global.quiet) {
            (Form::Json | Form::StreamJson, _) => Volume::Silent,
            (Form::Screen, true) => Volume::Quiet,
            (Form::Screen, false) => Volume::Usual,
        };
        let screen = Screen::new(volume, &common.environment);
        let asker = Asker::at_terminal(common).filter(|_| form == Form::Screen);
        let tell = FailureFormat::as_json(common.global.json);
        common.lines.end_on_signal(tell, Code::Interrupted)?;
        Ok(Viewer {
            form,
            tell,
            screen,
            signals: Signals::listen()?,
            asker,
            typing: Typing::default(),
            leaves_questions: false,
            interrupted: false,
            lines: common.lines.clone(),
        })
    }

    /// Switches to another run for a while. Returns the screen of the present one.
    pub fn turn_to_another(&mut self, common: &Common) -> Screen {
        let volume = self.screen.volume();
        std::mem::replace(&mut self.screen, Screen::new(volume, &common.environment))
    }

    /// Loads the past events of `row` and its active subagents into the screen, so that later events
    /// can refer to them.
    pub async fn recall(
        &mut self,
        runtime: &Runtime,
        row: &RunRow,
    ) -> Result<ShownPositions, Failure> {
        self.screen.attend(row.id);
        if is_unpriced(runtime, &row.about.model) {
            self.screen.know_no_price();
        }
        self.warn_of_distrust(runtime, row.id).await?;
        let tree = runtime.handle(row.id).tree().await?;
        self.screen.totals().begin(&tree);
        // Runs that were told to stop work no more.
        let is_active = |below: &&RunRow| is_open(below) && !below.state.stopping;
        let below = tree.iter().filter(|below| below.id != row.id);
        let open: Vec<&RunRow> = below.filter(is_active).collect();
        let started: HashSet<RunId> = open.iter().map(|below| below.id).collect();
        let is_start = |record: &Record| match &record.event {
            Event::ChildStarted(child) => started.contains(&child.run),
            _ => false,
        };
        let screen = &mut self.screen;
        read(runtime, row, |record| {
            screen.recall(record);
            if is_start(record) {
                screen.recall_below(record);
            }
        })
        .await?;
        for below in &open {
            self.warn_of_distrust(runtime, below.id).await?;
            let screen = &mut self.screen;
            read(runtime, below, |record| {
                if !matches!(record.event, Event::ChildStarted(_)) || is_start(record) {
                    screen.recall_below(record);
                }
            })
            .await?;
        }
        let below = open.iter().map(|below| (below.id, below.log.last_seq)).collect();
        Ok(ShownPositions { after: row.log.last_seq, below })
    }

    /// Shows a run until then, or until a signal arrives. May be called again to continue.
    pub async fn follow(
        &mut self,
        runtime: &Runtime,
        followee: &mut FollowedRun,
        until: Until,
    ) -> Result<Followed, Failure> {
        let run = followee.run.clone();
        self.screen.attend(run.id());
        let mut rest = std::pin::pin!(runtime.settled(run.id()));
        let mut looking = true;
        let mut rested: Option<RunRow> = None;
        // Each turn of a session has its own claim.
        followee.claim = None;
        let mut ticks = tokio::time::interval(Duration::from_millis(100));
        let mut checks = tokio::time::interval(Duration::from_secs(1));
        if std::mem::take(&mut followee.may_ask)
            && let Some(signal) = self.ask(runtime, followee).await?
        {
            return Ok(Followed::Signal(signal));
        }
        let mut ask_at: Option<Instant> = None;
        let lines = self.lines.to_screen();
        let contact = self.lines.contact.clone();
        loop {
            followee.claim = followee.claim.max(run.executed_here());
            // Show all events from before the run became idle first.
            if let Some(row) = rested.take_if(|row| row.log.last_seq <= followee.shown) {
                self.settle(&run).await?;
                // The run may also wait for a subagent that asks a question.
                let asks = ask_at.take().is_some() || row.state.asks > 0;
                if asks && self.asker.is_some() {
                    if let Some(signal) = self.ask(runtime, followee).await? {
                        return Ok(Followed::Signal(signal));
                    }
                    if self.asker.is_some() {
                        looking = true;
                        rest.set(runtime.settled(run.id()));
                        continue;
                    }
                }
                match until {
                    Until::Rest => return Ok(Followed::Rests(Box::new(row))),
                    Until::End => {
                        self.end_turn()?;
                        self.screen.remark(&at_rest(&row));
                    }
                }
            }
            let update = tokio::select! {
                biased;
                signal = self.signals.next() => {
                    if signal == Signal::Interrupt {
                        self.screen.leave_line();
                    }
                    return Ok(Followed::Signal(signal));
                }
                key = self.typing.key() => {
                    if self.typing.take(key) == KeyRequest::Stop {
                        return Ok(Followed::Signal(Signal::Interrupt));
                    }
                    let lines = self.typing.lines(self.screen.paint());
                    self.screen.show_typed(lines);
                    continue;
                }
                update = followee.next() => update,
                row = &mut rest, if looking => {
                    (looking, rested) = (false, Some(row?));
                    continue;
                }
                () = reached(ask_at) => {
                    ask_at = None;
                    match self.ask(runtime, followee).await? {
                        Some(signal) => return Ok(Followed::Signal(signal)),
                        None => continue,
                    }
                }
                _ = ticks.tick() => {
                    lines.take().iter().for_each(|line| self.screen.note(line));
                    self.screen.tick();
                    continue;
                }
                _ = checks.tick(), if contact.away().is_none() => {
                    let looking = async {
                        self.look_who_executes(followee).await?;
                        self.look_in_line(runtime, followee).await
                    };
                    tokio::select! {
                        looked = looking => looked?,
                        // The next check is for later.
                        _ = contact.away_for(Duration::ZERO) => {}
                    }
                    continue;
                }
            };
            let Some(update) = update else {
                match over(&run).await? {
                    // The stream ended with an earlier end of the run.
                    Followed::Rests(row) if row.log.last_seq > followee.shown => {
                        followee.events = run.tree_events(followee.shown);
                        continue;
                    }
                    over => return Ok(over),
                }
            };
            let (about, update) = update?;
            if let Some(outcome) = self.show(followee, about, &update)? {
                self.settle(&run).await?;
                if followee.is_old && self.form == Form::Screen {
                    self.screen.totals().sum_up(&run.tree().await?, run.id());
                }
                self.look_who_executes(followee).await?;
                if !went_on(runtime, &update).await? {
                    return Ok(Followed::Ended(outcome));
                }
                self.end_turn()?;
                if !outcome.is_completed() {
                    self.screen.remark(&clean_line(&outcome.to_string(), 600));
                }
                continue;
            }
            if matches!(&update, Update::Event(it) if is_question(&it.event)) {
                ask_at = ask_at.or(Some(Instant::now() + SOON));
            }
            if about == run.id() && !looking && rested.is_none() {
                looking = true;
                rest.set(runtime.settled(run.id()));
            }
        }
    }

    /// True when a person can answer questions of runs.
    pub fn can_ask(&self) -> bool {
        self.asker.is_some()
    }

    /// Shows the last text, if it is not shown yet.
    pub fn end_turn(&mut self) -> Result<(), Failure> {
        match self.form {
            Form::Screen => self.screen.end_turn(),
            Form::Json | Form::StreamJson => Ok(()),
        }
    }

    /// Completes the states of subagents from the store when the run ends or is idle.
    async fn settle(&mut self, run: &RunHandle) -> Result<(), Failure> {
        if self.screen.has_children() {
            self.screen.settle(&run.tree().await?);
        }
        Ok(())
    }

    fn show(
        &mut self,
        followee: &mut FollowedRun,
        run: RunId,
        update: &Update,
    ) -> Result<Option<Outcome>, Failure> {
        match self.form {
            // With JSON at the end, the screen is quiet and only collects.
            Form::Screen | Form::Json => self.screen.show(run, update),
            Form::StreamJson => match update {
                Update::Event(record) => print::json(record)?,
                Update::Delta(delta) => print::json(&DeltaLine { run, delta })?,
            },
        }
        let Update::Event(record) = update else { return Ok(None) };
        if run != followee.run.id() {
            return Ok(None);
        }
        followee.shown = record.seq;
        match &record.event {
            Event::RunFinished(finished) => Ok(Some(finished.outcome.clone())),
            _ => Ok(None),
        }
    }

    /// Reports that another process has taken the run over, because this one did not respond for too
    /// long. Its claim has a higher epoch than ours.
    async fn look_who_executes(&mut self, followee: &mut FollowedRun) -> Result<(), Failure> {
        if followee.claim.is_none() && followee.orphan.is_none() {
            return Ok(());
        }
        let row = followee.run.row().await?;
        let Some(ours) = followee.claim else {
            self.look_whether_orphan(followee, &row);
            return Ok(());
        };
        // A later claim may be our own: one that began and ended between two checks leaves no owner.
        let ours = Some(ours).max(followee.run.executed_here());
        if Some(row.work.epoch) <= ours || row.work.owner.is_none() {
            return Ok(());
        }
        followee.claim = Some(row.work.epoch);
        self.screen.pause();
        print::note(format!(
            "another process has taken over run {}: this process was stopped for too long, or the \
             daemon claimed the run first. This process stores nothing more for the run; it now only \
             follows it",
            row.id.short()
        ));
        Ok(())
    }

    /// Reports that the process that executed the run is gone.
    fn look_whether_orphan(&mut self, followee: &mut FollowedRun, row: &RunRow) {
        let Some(was_orphan) = followee.orphan else { return };
        let is_orphan = row.status == Status::Crashed;
        if is_orphan && !was_orphan {
            let short = row.id.short();
            self.screen.remark(&format!(
                "the process that executed run {short} has died; `posse runs resume {short}` continues \
                 the run"
            ));
        }
        followee.orphan = Some(is_orphan);
    }

    /// Shows the outcome of a run and returns the exit code.
    pub async fn conclude(
        &mut self,
        runtime: &Runtime,
        run: &RunHandle,
        outcome: &Outcome,
    ) -> Result<Code, Failure> {
        match self.form {
            Form::Screen => {
                self.screen.finish(run.id(), outcome)?;
                if outcome.is_completed()
                    && let Some(over) = overdrawn(&run.row().await?)
                {
                    print::note(over);
                }
            }
            Form::Json => {
                let row = run.row().await?;
                let family = Tree::of(runtime, &row).await?;
                let view = family.view(&row).with_worktree(self.screen.worktree());
                print::json_pretty(&view.with_text(outcome.text()))?;
            }
            Form::StreamJson => {}
        }
        Ok(Code::of(outcome))
    }

    /// The next signal.
    pub async fn signal(&mut self) -> Signal {
        let signal = self.signals.next().await;
        if signal == Signal::Interrupt {
            self.screen.leave_line();
        }
        signal
    }
}

/// The message for a run that completed but spent more than its budget, because a call cost more than expected.
fn overdrawn(row: &RunRow) -> Option<String> {
    // The cost of calls that were cut short is unknown, so leave it out.
    let (budget, drawn) = (row.funds.budget.as_ref()?.cost?, row.funds.drawn?.cost);
    let drawn = drawn.saturating_sub(row.spending.uncertain.cost);
    (drawn > budget).then(|| {
        format!(
            "the run cost {drawn}, and its budget was {budget}: the vendor charged more for the last \
             call than Posse expected"
        )
    })
}

/// The state of a run without further events: it had ended before it was followed.
async fn over(run: &RunHandle) -> Result<Followed, Failure> {
    let row = run.row().await?;
    match row.state.archived {
        true => Err(Failure::internal(format!("run {} is archived", run.id()))
            .hint("you cannot resume an archived run; start a new one with `posse run`")),
        false => Ok(Followed::Rests(Box::new(row))),
    }
}

/// True when the run has continued after the end in `update`.
async fn went_on(runtime: &Runtime, update: &Update) -> Result<bool, Failure> {
    let Update::Event(record) = update else { return Ok(false) };
    let row = runtime.find(&record.run.to_string()).await?;
    Ok(row.state.outcome.is_none() || row.state.finished_at != record.at)
}

/// What `event` means for an idle run.
fn told_by(event: &Event) -> Option<Arrival> {
    let Event::MessageReceived(received) = event else { return None };
    match received.from {
        Sender::Child(_) if received.is_only_recorded() => Some(Arrival::Recorded),
        Sender::Child(_) => Some(Arrival::End),
        Sender::User => Some(Arrival::Message),
        _ => None,
    }
}

/// Reads the events of a run up to the position in `row`.
pub async fn read(
    runtime: &Runtime,
    row: &RunRow,
    mut visit: impl FnMut(&Record),
) -> Result<(), Failure> {
    let mut after = Seq::ZERO;
    loop {
        let page = runtime.read(row.id, after, PAGE).await?;
        page.iter().take_while(|record| record.seq <= row.log.last_seq).for_each(&mut visit);
        match page.last() {
            Some(last) if last.seq < row.log.last_seq => after = last.seq,
            _ => return Ok(()),
        }
    }
}
