//! What a command says and does while the server of its database is away.

use crate::exit::{Code, Failure, plain};
use crate::format;
use crate::print::{self, FailureFormat};
use crate::signals::Signals;
use parking_lot::Mutex;
use posse::store::Contact;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A server that is away for less is not worth a line: it restarts, or a replica takes over.
const WORTH_SAYING: Duration = Duration::from_secs(2);

/// How long the server must be away until a signal ends the process without it.
const GIVE_UP: Duration = Duration::from_secs(2);

/// How long a signal ends the process if the server goes away only then.
const SIGNAL_HOLDS: Duration = Duration::from_secs(10);

/// Says when the server of a database goes away, and when it is back.
#[derive(Clone, Debug, Default)]
pub struct Lines {
    pub contact: Contact,
    shown: Arc<Mutex<Shown>>,
}

/// Where the lines go.
#[derive(Debug, Default)]
struct Shown {
    has_begun: bool,
    /// A signal ends the process while the server is away.
    ends: bool,
    /// How many screens show lines among their own.
    screens: usize,
    /// Lines for a screen.
    waiting: VecDeque<String>,
}

impl Lines {
    /// Starts to say what happens to the server of `database`, unless it has started before.
    pub fn begin(&self, database: String) {
        if std::mem::replace(&mut self.shown.lock().has_begun, true) {
            return;
        }
        let lines = self.clone();
        #[expect(
            clippy::disallowed_methods,
            reason = "waits for the server; ends with the process"
        )]
        tokio::spawn(async move {
            loop {
                let away = lines.contact.away_for(WORTH_SAYING).await;
                let since = moment(away.since);
                let reason = plain(&away.reason);
                lines.say(format!(
                    "the server of {database} cannot be reached since {since}: {reason}. Posse tries \
                     again"
                ));
                let _ = lines.contact.watch().wait_for(Option::is_none).await;
                let took = format::seconds(away.since.elapsed());
                lines.say(format!("the server of {database} answers again, after {took}"));
            }
        });
    }

    /// Ends the process soon after a signal if the server is away then, and at once after a second
    /// one: what the command would still store or read must not hold it. This is as if the process
    /// had died. `code` is the exit code then.
    pub fn end_on_signal(&self, tell: FailureFormat, code: Code) -> Result<(), Failure> {
        if std::mem::replace(&mut self.shown.lock().ends, true) {
            return Ok(());
        }
        let (signals, contact) = (Signals::listen()?, self.contact.clone());
        #[expect(clippy::disallowed_methods, reason = "waits for a signal; ends with the process")]
        tokio::spawn(async move {
            let end = end(signals, contact).await;
            match code {
                Code::Done => print::note(end.message),
                _ => print::failure(&Failure { code, ..end }, tell),
            }
            std::process::exit(code as i32);
        });
        Ok(())
    }

    fn say(&self, line: String) {
        let mut shown = self.shown.lock();
        match shown.screens {
            0 => print::note(line),
            _ => shown.waiting.push_back(line),
        }
    }

    /// Gives the lines to a screen until the returned value is dropped.
    pub fn to_screen(&self) -> ToScreen {
        self.shown.lock().screens += 1;
        ToScreen(self.clone())
    }
}

/// Gives lines to a screen.
pub struct ToScreen(Lines);

impl ToScreen {
    /// Returns the lines since the last call.
    pub fn take(&self) -> Vec<String> {
        self.0.shown.lock().waiting.drain(..).collect()
    }
}

impl Drop for ToScreen {
    fn drop(&mut self) {
        let mut shown = self.0.shown.lock();
        shown.screens -= 1;
        if shown.screens == 0 {
            shown.waiting.drain(..).for_each(print::note);
        }
    }
}

/// Waits for a signal while the server is away, or after which it goes away. Returns how the process
/// ends.
async fn end(mut signals: Signals, contact: Contact) -> Failure {
    loop {
        let signal = signals.next().await;
        let again = async {
            signals.next().await;
            contact.away_for(Duration::ZERO).await
        };
        let away = tokio::select! {
            away = contact.away_for(GIVE_UP) => away,
            away = again => away,
            () = tokio::time::sleep(SIGNAL_HOLDS) => continue,
        };
        let (since, reason) = (moment(away.since), plain(&away.reason));
        let message = format!(
            "stopped by {signal}, without the database server, which cannot be reached since {since}: \
             {reason}"
        );
        return Failure { code: Code::Interrupted, message, hint: None }.hint(
            "everything stored is kept: when the server is back, `posse runs resume RUN` or a worker \
             continues a run",
        );
    }
}

/// The time of `instant`, of this day.
fn moment(instant: Instant) -> String {
    let at = format::now().saturating_sub(instant.elapsed().as_millis() as u64);
    let written = format::timestamp(at);
    format!("{} UTC", written.get(11..19).unwrap_or(&written))
}
