//! The way from a command's own network to the proxy of its run.
//!
//! A command that may talk to some hosts has a network of its own in which nothing is but itself.
//! A process of the supervisor's goes there, listens where the command was told that the proxy is,
//! and passes each connection on to the proxy's socket outside. It carries bytes and decides
//! nothing.

use crate::linux;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, Signal, WaitOptions, getpid, kill_process, waitpid};
use std::fs::File;
use std::io::{self, Read, Write, copy};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::exit;

/// Where the command finds the proxy. Nobody else listens in its network.
pub(super) const PORT: u16 = 3128;

/// Variables by which programs find a proxy.
pub(super) const VARIABLES: [&str; 6] =
    ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"];

/// A bridge that stands.
pub(super) struct Bridge(Pid);

impl Bridge {
    /// Builds one from the network of the process `inside` to the socket `proxy`.
    pub(super) fn build(inside: i32, proxy: &Path) -> io::Result<Bridge> {
        let network = File::open(format!("/proc/{inside}/ns/net"))?;
        let (answer, says) = pipe_with(PipeFlags::CLOEXEC)?;
        let supervisor = getpid();
        let Some(bridge) = linux::fork()? else {
            drop(answer);
            let mut says = File::from(says);
            let listening = linux::die_with(supervisor).and_then(|()| listen(&network));
            match listening {
                Ok(listener) => {
                    let _ = says.write_all(b"+");
                    drop(says);
                    carry(&listener, proxy);
                }
                Err(error) => drop(says.write_all(error.to_string().as_bytes())),
            }
            exit(0);
        };
        drop(says);
        let bridge = Bridge(bridge);
        let mut told = String::new();
        File::from(answer).read_to_string(&mut told)?;
        match told.as_str() {
            "+" => Ok(bridge),
            why => Err(io::Error::other(format!("there is no way to the proxy: {why}"))),
        }
    }
}

impl Drop for Bridge {
    fn drop(&mut self) {
        let _ = kill_process(self.0, Signal::KILL);
        let _ = waitpid(Some(self.0), WaitOptions::empty());
    }
}

/// Goes to `network` and listens there.
fn listen(network: &File) -> io::Result<TcpListener> {
    linux::enter_network(network)?;
    TcpListener::bind((Ipv4Addr::LOCALHOST, PORT))
}

/// Passes connections on for as long as this process lives.
fn carry(listener: &TcpListener, proxy: &Path) {
    while let Ok((inside, _)) = listener.accept() {
        let Ok(outside) = UnixStream::connect(proxy) else { continue };
        // Each direction ends by itself; a connection that is not carried is closed.
        let (Ok(from_inside), Ok(to_outside)) = (inside.try_clone(), outside.try_clone()) else {
            continue;
        };
        std::thread::spawn(move || outwards(from_inside, to_outside));
        std::thread::spawn(move || inwards(outside, inside));
    }
}

fn outwards(mut from: TcpStream, mut to: UnixStream) {
    let _ = copy(&mut from, &mut to);
    let _ = to.shutdown(Shutdown::Write);
}

fn inwards(mut from: UnixStream, mut to: TcpStream) {
    let _ = copy(&mut from, &mut to);
    let _ = to.shutdown(Shutdown::Both);
    let _ = from.shutdown(Shutdown::Both);
}
