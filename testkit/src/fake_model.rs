//! The server: binds, accepts, tracks its tasks, and ends them when it is dropped.

use crate::captured::Captured;
use crate::connection::{self, Stage};
use crate::counts::Counts;
use crate::ledger::Ledger;
use crate::script::{Book, Script, When};
use crate::signal::TimedOut;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Connections that may wait to be accepted; thousands of runs can start at once.
const BACKLOG: u32 = 4096;
/// How long accepting rests when the process has no file descriptors left.
const REST: Duration = Duration::from_millis(10);

/// A model that answers from a script, over real HTTP. Dropping it stops everything.
#[derive(Debug)]
pub struct FakeModel {
    address: SocketAddr,
    ledger: Arc<Ledger>,
    /// Requests to the second address, after a redirect.
    strays: Arc<Ledger>,
    tasks: TaskTracker,
    stop: CancellationToken,
}

/// Why the server could not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The script cannot be played.
    #[error("the script cannot be played: {reason}")]
    Script {
        /// Which rule, and what is wrong with it.
        reason: String,
    },
    /// The address cannot be listened on.
    #[error(
        "cannot listen on {address}: {source}; choose another address, or port 0 for a free one"
    )]
    Listen {
        /// The address.
        address: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
}

impl FakeModel {
    /// Starts on a free port of 127.0.0.1.
    pub async fn start(script: Script) -> Result<Self, StartError> {
        Self::start_on(script, SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).await
    }

    /// Starts on this address. It has no authentication: keep it on the loopback interface.
    pub async fn start_on(script: Script, address: SocketAddr) -> Result<Self, StartError> {
        let ledger = Arc::new(Ledger::new(script.capture));
        let strays = Arc::new(Ledger::default());
        let book = Book::open(script).map_err(|reason| StartError::Script { reason })?;
        let (listener, address) = listen(address)?;
        let tasks = Tasks { tracker: TaskTracker::new(), stop: CancellationToken::new() };
        let elsewhere = match book.has_faults() {
            true => Some(listen(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))?),
            false => None,
        };
        let stage = Stage {
            book,
            ledger: ledger.clone(),
            elsewhere: elsewhere.as_ref().map(|(_, address)| *address),
        };
        let stage = Arc::new(stage);
        tasks.accept(listener, move |stream| {
            let stage = stage.clone();
            async move { connection::serve(stream, &stage).await }
        });
        if let Some((listener, _)) = elsewhere {
            let strays = strays.clone();
            tasks.accept(listener, move |stream| {
                let strays = strays.clone();
                async move { connection::turn_away(stream, &strays).await }
            });
        }
        let Tasks { tracker: tasks, stop } = tasks;
        tasks.close();
        Ok(FakeModel { address, ledger, strays, tasks, stop })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The base URL, without a slash at its end.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// All requests so far, in the order they arrived; none if the script captures none.
    pub fn requests(&self) -> Vec<Captured> {
        self.ledger.requests()
    }

    /// Request `number`, counted from 1.
    ///
    /// # Panics
    /// When there was no such request, or requests are not captured.
    #[track_caller]
    pub fn request(&self, number: usize) -> Captured {
        let mut requests = self.requests();
        assert!(
            (1..=requests.len()).contains(&number),
            "there is no request {number}: the fake model has captured {}",
            requests.len()
        );
        requests.swap_remove(number - 1)
    }

    /// The request that came last.
    ///
    /// # Panics
    /// When there was none, or requests are not captured.
    #[track_caller]
    pub fn last_request(&self) -> Captured {
        self.request(self.count())
    }

    /// The requests so far that fit, in the order they arrived.
    pub fn requests_where(&self, when: &When) -> Vec<Captured> {
        let mut requests = self.requests();
        requests.retain(|request| request.fits(when));
        requests
    }

    /// The requests that were answered so far, counted by wire, status and model.
    pub fn counts(&self) -> Counts {
        self.ledger.counts()
    }

    /// Checks that every request was valid and foreseen by the script.
    ///
    /// # Panics
    /// When one was not, with the reasons.
    #[track_caller]
    pub fn assert_nothing_refused(&self) {
        let reasons = self.ledger.reasons();
        assert!(
            reasons.is_empty(),
            "the fake model has refused what it should not have been asked:\n{}",
            reasons.join("\n")
        );
    }

    /// The number of requests so far.
    pub fn count(&self) -> usize {
        self.ledger.arrived()
    }

    /// The number of requests that are not answered to the end yet.
    pub fn in_flight(&self) -> usize {
        self.ledger.in_flight()
    }

    /// The most requests that were in flight at once.
    pub fn peak_in_flight(&self) -> usize {
        self.ledger.peak()
    }

    /// The number of requests whose client left before the reply was complete.
    pub fn abandoned(&self) -> usize {
        self.ledger.abandoned()
    }

    /// The number of requests that were answered with status 400: not valid, or not foreseen by
    /// the script.
    pub fn refused(&self) -> usize {
        self.ledger.refused()
    }

    /// The number of connections that were accepted so far.
    pub fn connections(&self) -> usize {
        self.ledger.connections()
    }

    /// The requests that followed the fault `redirect-elsewhere` to another host, with all that
    /// their clients sent there.
    pub fn strays(&self) -> Vec<Captured> {
        self.strays.requests()
    }

    /// Returns when at least `count` requests have arrived.
    pub async fn wait_for_requests(&self, count: usize) -> Result<(), TimedOut> {
        self.ledger.wait_for_requests(count).await
    }

    /// Returns when no request is in flight.
    pub async fn wait_until_idle(&self) -> Result<(), TimedOut> {
        self.ledger.wait_until_idle().await
    }

    /// Stops listening, closes every connection, and returns when all is over.
    pub async fn shutdown(self) {
        self.stop.cancel();
        self.tasks.wait().await;
    }
}

impl Drop for FakeModel {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// The tasks of a server, and what stops them.
struct Tasks {
    tracker: TaskTracker,
    stop: CancellationToken,
}

impl Tasks {
    /// Has each connection served by a task of its own.
    fn accept<F: Future<Output = ()> + Send + 'static>(
        &self,
        listener: TcpListener,
        serve: impl Fn(TcpStream) -> F + Send + 'static,
    ) {
        let (tracker, stop) = (self.tracker.clone(), self.stop.clone());
        self.tracker.spawn(async move {
            loop {
                let accepted = tokio::select! {
                    () = stop.cancelled() => return,
                    accepted = listener.accept() => accepted,
                };
                let Ok((stream, _)) = accepted else {
                    tokio::time::sleep(REST).await;
                    continue;
                };
                let (serving, stop) = (serve(stream), stop.clone());
                tracker.spawn(async move {
                    // The drop closes the connection of a stopped task.
                    let _ = stop.run_until_cancelled(serving).await;
                });
            }
        });
    }
}

fn listen(address: SocketAddr) -> Result<(TcpListener, SocketAddr), StartError> {
    let failed = |source| StartError::Listen { address, source };
    let listener = bind(address).map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    Ok((listener, address))
}

fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}
