//! A bridge from a command's own network namespace to the proxy of its run.
//!
//! A command that may talk only to some hosts has its own network namespace, which contains nothing
//! else. The supervisor forks a process that enters this namespace and listens at the address that the
//! command uses as its proxy. It forwards each connection to the proxy's socket outside. It copies
//! bytes and makes no decisions.

use crate::linux;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, Signal, WaitOptions, getpid, kill_process, waitpid};
use std::fs::File;
use std::io::{self, Read, Write, copy};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::exit;

/// The port of the proxy in the command's network. Nothing else listens there.
pub(super) const PORT: u16 = 3128;

/// The environment variables by which programs find a proxy.
pub(super) const VARIABLES: [&str; 6] =
    ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"];

/// The process of a running bridge. Dropping the value kills it.
pub(super) struct Bridge(Pid);

impl Bridge {
    /// Starts a bridge from the network of the process `inside` to the socket `proxy`.
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

/// Enters `network` and listens there.
fn listen(network: &File) -> io::Result<TcpListener> {
    linux::enter_network(network)?;
    TcpListener::bind((Ipv4Addr::LOCALHOST, PORT))
}

/// Forwards connections for as long as this process lives.
fn carry(listener: &TcpListener, proxy: &Path) {
    while let Ok((inside, _)) = listener.accept() {
        let Ok(outside) = UnixStream::connect(proxy) else { continue };
        // Each direction ends by itself. A connection that cannot be forwarded is closed.
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
